/**
 * The persistent-volume controller: binds claims and volumes, has volumes made and deleted, and keeps
 * the annotations that separate in-tree code from external provisioners. Source: docs/behaviour/controllers.md
 * Part B.
 *
 * Invariants
 *  - One claim and one volume at a time: the passes are not re-entrant.
 *  - A stale cache does no harm: writes carry the version they were made from, and what cannot be
 *    undone (lost, released, deleted) is asked live before.
 */
import {
  createEventRecorder,
  type KubeEnv,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type SharedInformers,
  settled,
  sharedInformers,
  startWorkQueue,
  trackWrites,
  type WorkQueue,
} from "@longshore/kube";
import { type Component, errorChain, type FeatureGates, stopAll, TaskGroup } from "@longshore/runtime";
import { gateDependencyWarnings } from "../../csimigration/gates.ts";
import {
  createMigratedPluginManager,
  withoutCompletedPlugins,
} from "../../csimigration/migrated-plugin-manager.ts";
import { createOperationExecutor } from "../../framework/operations.ts";
import type { VolumePlugin } from "../../framework/plugin.ts";
import { createVolumePluginManager } from "../../framework/plugin-manager.ts";
import { claimOfPodVolume } from "../attach-detach/pod-volume-spec.ts";
import { classOfClaim } from "./annotations.ts";
import { type PersistentVolumeContext, podsByClaimIndex } from "./context.ts";
import { syncClaim } from "./sync-claim.ts";
import { syncVolume } from "./sync-volume.ts";

/** The seams of the controller. */
export type PersistentVolumeEnv = KubeEnv & {
  /** The volume plugins, not initialised; those of clouds are bound to this controller as their caller. */
  readonly plugins: readonly VolumePlugin[];
  /** Caches shared with other controllers of the process; its own when left out. */
  readonly informers?: SharedInformers;
};

/** How the controller runs. */
export interface PersistentVolumeOptions {
  /** The controller manager's gates. */
  readonly gates: FeatureGates;
  /** Do what Kubernetes 1.20 is recorded to do where ours deliberately differs. */
  readonly compat?: "kubernetes-1.20" | undefined;
  /** Given to plugins; default `kubernetes`. */
  readonly clusterName?: string | undefined;
}

const reconcileTimeoutMs = 120_000;

/** Starts the controller; it works in the background until it is stopped. */
export function startPersistentVolumeController(
  given: PersistentVolumeEnv,
  options: PersistentVolumeOptions,
): Component {
  const tasks = new TaskGroup((error) =>
    given.logger.error("persistent-volume controller failed", { error }),
  );
  const parts: Component[] = [];
  const informers = given.informers ?? sharedInformers(given);
  if (given.informers === undefined) parts.push(informers);
  const env = trackWrites(given, informers);
  for (const warning of gateDependencyWarnings(options.gates)) env.logger.warn(warning);
  tasks.spawn((signal) => run(env, options, informers, parts, signal));
  return {
    async stop() {
      await tasks.stop();
      await stopAll(parts);
    },
  };
}

async function run(
  env: PersistentVolumeEnv,
  options: PersistentVolumeOptions,
  informers: SharedInformers,
  parts: Component[],
  signal: AbortSignal,
): Promise<void> {
  const claims = informers.of(resources.persistentVolumeClaims);
  const volumes = informers.of(resources.persistentVolumes);
  const classes = informers.of(resources.storageClasses);
  const pods = informers.of(resources.pods, {
    indexes: {
      [podsByClaimIndex]: (pod) =>
        (pod.spec?.volumes ?? []).flatMap((volume) => {
          const claim = claimOfPodVolume(pod, volume);
          return claim === undefined ? [] : [`${claim.namespace}/${claim.name}`];
        }),
    },
  });
  await Promise.all([claims, volumes, classes, pods].map((cache) => cache.synced(signal)));

  const migration = createMigratedPluginManager(options.gates);
  const plugins = await createVolumePluginManager(
    {
      clock: env.clock,
      random: env.random,
      logger: env.logger,
      meter: env.meter,
      kube: env.kube,
      csiDriver: (name, within) => env.kube.get(resources.csiDrivers, { name }, { signal: within }),
    },
    withoutCompletedPlugins(env.plugins, migration),
  );
  const queues: { claims?: WorkQueue; volumes?: WorkQueue } = {};
  const executor = createOperationExecutor(env, {
    onEnd({ key, error, retryInMs }) {
      if (error === undefined) return; // The objects that it wrote wake what has to follow.
      env.logger.warn("volume operation failed", {
        operation: key.volumeName,
        retryInMs,
        error: errorChain(error),
      });
      wakeObjectOf(key.volumeName, queues, retryInMs);
    },
  });
  const events = createEventRecorder(env, { component: "persistentvolume-controller" });
  const context: PersistentVolumeContext = {
    env,
    compat: options.compat !== undefined,
    clusterName: options.clusterName ?? "kubernetes",
    claims,
    volumes,
    classes,
    pods,
    plugins,
    migration,
    executor,
    events,
    enqueueClaim: (key) => queues.claims?.add(key),
    enqueueVolume: (name) => queues.volumes?.add(name),
  };
  queues.volumes = startWorkQueue(env, {
    name: "volumes",
    reconcileTimeoutMs,
    reconcile: async (name, within) => {
      await syncVolume(context, name, within);
      return settled;
    },
  });
  queues.claims = startWorkQueue(env, {
    name: "claims",
    reconcileTimeoutMs,
    reconcile: async (key, within) => {
      await syncClaim(context, key, within);
      return settled;
    },
  });
  parts.push(events, executor, queues.volumes, queues.claims, subscription(watchObjects(context)));
}

/** Subscribes to the caches: a changed object enqueues its keys. @returns functions that unsubscribe */
function watchObjects(context: PersistentVolumeContext): readonly (() => void)[] {
  const { claims, volumes, classes, pods } = context;
  const onClaim = (claim: PersistentVolumeClaim) => {
    context.enqueueClaim(keyOf(claim));
    const volumeName = claim.spec?.volumeName ?? "";
    if (volumeName !== "") context.enqueueVolume(volumeName);
  };
  const onVolume = (volume: PersistentVolume) => {
    context.enqueueVolume(keyOf(volume));
    const ref = volume.spec?.claimRef;
    if (ref != null) context.enqueueClaim(`${ref.namespace}/${ref.name}`);
    else if (volume.status?.phase === "Available") wakeUnbound(volume.spec?.storageClassName ?? "");
  };
  const wakeUnbound = (className: string) => {
    for (const claim of claims.list()) {
      if ((claim.spec?.volumeName ?? "") === "" && classOfClaim(claim) === className) {
        context.enqueueClaim(keyOf(claim));
      }
    }
  };
  return [
    volumes.onChange({
      added: onVolume,
      updated: (_before, after) => onVolume(after),
      deleted: onVolume,
    }),
    claims.onChange({
      added: onClaim,
      updated: (_before, after) => onClaim(after),
      deleted: (claim) => {
        onClaim(claim);
        // A volume made for the claim but not yet taken by it has to be released as well.
        context.enqueueVolume(`pvc-${claim.metadata.uid}`);
      },
    }),
    classes.onChange({
      added: (storageClass) => wakeUnbound(storageClass.metadata.name),
      updated: (_before, after) => wakeUnbound(after.metadata.name),
    }),
    pods.onChange({
      added: (pod) => {
        for (const volume of pod.spec?.volumes ?? []) {
          const claim = claimOfPodVolume(pod, volume);
          const key = claim === undefined ? "" : `${claim.namespace}/${claim.name}`;
          if (claims.get(key)?.status?.phase === "Pending") context.enqueueClaim(key);
        }
      },
    }),
  ];
}

function subscription(unsubscribe: readonly (() => void)[]): Component {
  return {
    async stop() {
      for (const end of unsubscribe) end();
    },
  };
}

/** Looks again at the object that an operation worked on. */
function wakeObjectOf(
  operation: string,
  queues: { readonly claims?: WorkQueue; readonly volumes?: WorkQueue },
  afterMs: number,
): void {
  const provision = /^provision-(.*)\[[^[]*\]$/.exec(operation)?.[1];
  const remove = /^delete-(.*)\[[^[]*\]$/.exec(operation)?.[1];
  if (provision !== undefined) queues.claims?.addAfter(provision, afterMs);
  if (remove !== undefined) queues.volumes?.addAfter(remove, afterMs);
}
