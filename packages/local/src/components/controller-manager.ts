/**
 * The control plane's controllers in one component, run by whichever replica leads: attach/detach,
 * persistent volumes, expansion, protection, scheduler, workloads and snapshots.
 */
import { type KubeClient, sharedInformers, startLeaderElection } from "@longshore/kube";
import { type Component, featureGates, type Host, type RuntimeEnv, stopAll } from "@longshore/runtime";
import { startSnapshotController } from "@longshore/sidecars/snapshot-controller";
import {
  type CloudCaller,
  createMigratedPluginManager,
  csiPlugin,
  type DiskCloud,
  flexVolumeProber,
  gateDependencyWarnings,
  startAttachDetachController,
  startEphemeralVolumeController,
  startExpandController,
  startPersistentVolumeController,
  startProtectionControllers,
  volumeGates,
} from "@longshore/volumes";
import { startScheduler } from "../scheduler/scheduler.ts";
import { startDaemonSetController } from "../workloads/daemon-set/daemon-set-controller.ts";
import { startDeploymentController } from "../workloads/deployment/deployment-controller.ts";
import { startDisruptionController } from "../workloads/disruption-controller.ts";
import { startJobController } from "../workloads/job/job-controller.ts";
import { startNodeLifecycleController } from "../workloads/node-lifecycle-controller.ts";
import { startPodRemovalController } from "../workloads/pod-removal-controller.ts";
import { startReplicaSetController } from "../workloads/replica-set/replica-set-controller.ts";
import { startStatefulSetController } from "../workloads/stateful-set/stateful-set-controller.ts";
import { fencedCloud } from "./fenced-cloud.ts";
import { fencedPrograms } from "./fenced-programs.ts";
import type { MakeInTreePlugins } from "./make-in-tree-plugins.ts";
import { publishControlPlaneGates } from "./publish-control-plane-gates.ts";

/** The seams of the controller manager. */
export interface ControllerManagerEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  /** The provider's disk API, bound to a caller. */
  cloudFor(caller: CloudCaller): DiskCloud;
}

/** Options of {@link startControllerManager}. */
export interface ControllerManagerOptions {
  /** Gate values over the defaults. */
  readonly gates: Readonly<Record<string, boolean>>;
  /** The in-tree plugins that it has; left out: none. */
  readonly inTreePlugins?: MakeInTreePlugins;
  /** Name of this replica in the election. */
  readonly identity: string;
  /** `kubernetes-1.20` selects the recorded behaviour where ours is deliberately different. */
  readonly compat?: "kubernetes-1.20";
  /** In-tree plugins whose migration counts as on in the attach/detach controller, whatever the gates; default none. */
  readonly forceMigrationOf?: readonly string[];
  /** Runs the snapshot controller, too, with group snapshots: where their kinds are installed; default false. */
  readonly snapshots?: boolean;
  /** Where Flexvolume drivers are installed, and what runs them; left out: none are looked for. */
  readonly flexVolumes?: { readonly host: Host; readonly directory: string };
  /** Called when the lead is lost after it was held; a process exits then. */
  readonly onLost?: () => void;
}

/** Likewise; the host of the drivers is that of the leader's term. */
interface ControllersOptions extends Omit<ControllerManagerOptions, "flexVolumes"> {
  readonly flexVolumes: ControllerManagerOptions["flexVolumes"] | undefined;
}

/** Starts the controller manager; its controllers run while it leads. */
export function startControllerManager(
  env: ControllerManagerEnv,
  options: ControllerManagerOptions,
): Component {
  const gates = featureGates(volumeGates, options.gates);
  for (const warning of gateDependencyWarnings(gates)) env.logger.warn(warning);
  return startLeaderElection(env, {
    name: "longshore-controller-manager",
    namespace: "kube-system",
    identity: options.identity,
    recordEvents: true,
    ...(options.onLost === undefined ? {} : { onLost: options.onLost }),
    lead: async (signal, kube, term) => {
      const cloudFor = (caller: CloudCaller) => fencedCloud(env.cloudFor(caller), env.clock, term);
      const { flexVolumes: installed } = options;
      const flexVolumes = installed && {
        ...installed,
        host: fencedPrograms(installed.host, env.clock, term),
      };
      const controllers = startControllers({ ...env, kube, cloudFor }, { ...options, flexVolumes });
      try {
        await publishControlPlaneGates(kube, gates.values, signal);
        await aborted(signal);
      } finally {
        await stopAll(controllers);
      }
    },
  });
}

function startControllers(env: ControllerManagerEnv, options: ControllersOptions): Component[] {
  const gates = featureGates(volumeGates, options.gates);
  const migration = createMigratedPluginManager(gates);
  const informers = sharedInformers(env);
  const shared = { ...env, informers };
  const compat = options.compat === undefined ? {} : { compat: options.compat };
  const pluginsFor = (component: string) => [
    ...(options.inTreePlugins?.((provider) => env.cloudFor({ path: "in-tree", component, provider })) ?? []),
    csiPlugin(),
  ];
  const { flexVolumes, forceMigrationOf } = options;
  // Not for the persistent-volume controller: Flexvolumes are neither provisioned nor deleted.
  const withProber = () =>
    flexVolumes === undefined ? {} : { prober: flexVolumeProber({ ...env, ...flexVolumes }, flexVolumes) };
  return [
    informers,
    startAttachDetachController(
      { ...shared, plugins: pluginsFor("attach-detach-controller"), ...withProber() },
      { gates, ...compat, forceMigrationOf },
    ),
    startPersistentVolumeController(
      { ...shared, plugins: pluginsFor("persistent-volume-controller") },
      { gates, ...compat },
    ),
    startExpandController(
      { ...shared, plugins: pluginsFor("expand-controller"), ...withProber() },
      { gates },
    ),
    startProtectionControllers(shared),
    startEphemeralVolumeController(shared),
    startStatefulSetController(shared),
    startReplicaSetController(shared),
    startDeploymentController(shared),
    startDaemonSetController(shared),
    startJobController(shared),
    startDisruptionController(shared),
    startNodeLifecycleController(shared),
    startPodRemovalController(shared),
    startScheduler(shared, { migrates: (plugin) => migration.isMigrationEnabledForPlugin(plugin) }),
    ...(options.snapshots === true ? [startSnapshotController(shared, { groupSnapshots: true })] : []),
  ];
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
