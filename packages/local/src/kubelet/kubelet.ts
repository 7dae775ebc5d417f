/**
 * The kubelet shell: registers the Node, reports its status, and runs the pods bound to it. All that
 * concerns volumes is in `@longshore/volumes`' node part, which this composes.
 *
 * Invariants
 *  - A container starts only with all its volumes certainly mounted.
 *  - A pod object is deleted only when nothing of it runs and none of its volumes may be mounted.
 *  - Nothing is remembered across a restart: pods are found again in the runtime.
 */
import type { CsiConnector } from "@longshore/csi";
import { ComponentScope, createEventRecorder, type KubeClient } from "@longshore/kube";
import type { Component, FeatureGates, Host, RuntimeEnv } from "@longshore/runtime";
import {
  type DynamicPluginProber,
  type NodeVolumes,
  startNodeVolumes,
  type VolumePlugin,
} from "@longshore/volumes";
import type { PodRuntime } from "../containers/pod-runtime.ts";
import type { ProbeNetwork } from "../containers/probe-network.ts";
import type { NodeServices } from "../node-server/node-request.ts";
import { statsSummary } from "../node-server/stats-summary.ts";
import { type ShutdownPeriods, shutdownMessage } from "./decide-node-shutdown-step.ts";
import { EmptyDirLimits } from "./empty-dir-limits.ts";
import type { NodeIdentity } from "./node-object.ts";
import { startNodePods } from "./node-pods.ts";
import { startNodeReporter } from "./node-reporter.ts";
import { NodeShutdown, shutDownNode } from "./node-shutdown.ts";
import { startPodWorker } from "./pod-worker.ts";
import { renewNodeLease } from "./renew-node-lease.ts";

/** The seams of a node agent. */
export interface KubeletEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly connector: CsiConnector;
  readonly runtime: PodRuntime;
  /** How probes and hooks reach containers. */
  readonly network: ProbeNetwork;
  /** Serves logs and programs of the node's pods to its API server; not at all when left out. */
  readonly serve?: (services: NodeServices) => Promise<Component>;
}

/** Options of {@link startKubelet}. */
export interface KubeletOptions {
  readonly identity: NodeIdentity;
  /** The kubelet root directory, e.g. `/var/lib/kubelet`. */
  readonly rootDir: string;
  /** Where the machine's devices are, by their names at the providers; default `/dev`. */
  readonly deviceDir?: string;
  /** Where containers' output goes. */
  readonly logDir: string;
  readonly gates: FeatureGates;
  readonly plugins: readonly VolumePlugin[];
  /** Finds plugins that come and go. */
  readonly prober?: DynamicPluginProber;
  /** `stop` shuts the node down gracefully, within this time; left out: it does not. */
  readonly shutdown?: ShutdownPeriods;
}

/** The running node agent. */
export interface RunningKubelet extends Component {
  /** Resolves when its Node was deleted: it is to be stopped and started again. */
  readonly failed: Promise<Error>;
}

/**
 * Starts the node agent; returns at once. `stop` ends its work and leaves pods running and volumes mounted, for the next
 * agent to find; with `shutdown` it first ends the pods and unmounts their volumes, unless the agent has failed.
 */
export function startKubelet(env: KubeletEnv, options: KubeletOptions): RunningKubelet {
  const { identity, rootDir, logDir, gates, plugins, prober } = options;
  const { nodeName } = identity;
  const scope = new ComponentScope((error) => env.logger.error("kubelet task failed", { error }));
  const events = createEventRecorder(env, { component: "kubelet", host: nodeName });
  const pods = startNodePods(env, nodeName);
  let onStatusChanged = () => {};
  let onExcess = (_podUID: string) => {};
  const emptyDirs = new EmptyDirLimits(events, (podUID) => onExcess(podUID));
  pods.onChange({ deleted: ({ metadata }) => emptyDirs.forget(metadata.uid) });
  const volumes = startNodeVolumes(env, {
    nodeName,
    rootDir,
    ...(options.deviceDir === undefined ? {} : { deviceDir: options.deviceDir }),
    gates,
    plugins,
    ...(prober === undefined ? {} : { prober }),
    onStatusChanged: () => onStatusChanged(),
    onVolumeMeasured: (volume) => emptyDirs.measured(volume),
  });
  const shutdown = new NodeShutdown(env.clock);
  const worker = startPodWorker(env, { volumes, events, pods, shutdown, emptyDirs, logDir });
  onExcess = (podUID) => worker.wake(podUID);
  const reporter = startNodeReporter(env, { identity, volumes: untilShutdown(volumes, shutdown) });
  onStatusChanged = () => {
    reporter.wake();
    worker.wakeDeleting();
  };
  scope.own(events, pods, volumes, reporter, worker);
  if (env.serve !== undefined) {
    const onError = (error: unknown) => env.logger.error("an answer to the API server failed", { error });
    const node = { nodeName, startTime: env.clock.now().toISOString() };
    const stats = () => statsSummary(node, pods.list(), volumes.volumeStats());
    const serving = env.serve({ clock: env.clock, pods, runtime: env.runtime, logDir, stats, onError });
    serving.catch((error) => env.logger.error("the node serves no logs", { error }));
    scope.own({ stop: async () => (await serving.catch(() => undefined))?.stop() });
  }
  scope.spawn((signal) => renewNodeLease(env, identity, signal));
  env.logger.info("node agent started", { node: nodeName, pods: pods.list().length });
  const periods = options.shutdown;
  const { failed } = reporter;
  if (periods === undefined) return { failed, stop: () => scope.stop() };
  const onPhase = () => {
    reporter.wake();
    worker.wakeAll();
  };
  const node = () => reporter.stored();
  const shutDown = () => shutDownNode(env, { shutdown, periods, pods, volumes, node, onPhase });
  let isFailed = false;
  void failed.then(() => {
    isFailed = true;
  });
  let stopping: Promise<void> | undefined;
  return {
    failed,
    stop() {
      stopping ??= (isFailed ? Promise.resolve() : shutDown()).finally(() => scope.stop());
      return stopping;
    },
  };
}

/** What the node reports of its volumes; while it shuts down, that it is not Ready. */
function untilShutdown(
  volumes: NodeVolumes,
  shutdown: NodeShutdown,
): Pick<NodeVolumes, "status" | "markReportedInUse"> {
  return {
    status() {
      const status = volumes.status();
      return shutdown.phase === undefined ? status : { ...status, error: shutdownMessage };
    },
    markReportedInUse: (names) => volumes.markReportedInUse(names),
  };
}
