/**
 * The deletion controller: deletes the disks of released volumes, in-tree. Its keys are names of volumes, and the
 * volumes controller wakes them. Source: docs/behaviour/controllers.md B5, "Delete operation".
 *
 * Several disks at a time: a volume runs in one pass at a time, and each has a disk of its own.
 */
import {
  type Actions,
  type Controller,
  type KubeEnv,
  type Pass,
  type PersistentVolume,
  refOf,
  resources,
  type Stored,
  settled,
  startController,
} from "@longshore/kube";
import { errorChain, withDeadline } from "@longshore/runtime";
import { provisionedByAnnotation } from "@longshore/storage";
import type { DeletableVolumePlugin, Deleter } from "../../framework/volume-plugin.ts";
import type { VolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { type DeletionObservation, type DeletionStep, decideDeletionStep } from "./decide-deletion-step.ts";
import { isKeptForDisk, releasedFromDisk } from "./deletion-finalizer.ts";
import { reportOnVolume } from "./events.ts";
import { operationsAtOnce, providerTimeoutMs } from "./operation-attempts.ts";
import type { PersistentVolumeContext } from "./persistent-volume-context.ts";

/** Starts the controller; it works in the background until it is stopped. */
export function startDeletionController(context: PersistentVolumeContext): Controller {
  return startController<DeletionObservation, DeletionStep>(context.env, {
    name: "volume_deletion",
    workers: operationsAtOnce,
    sources: [],
    observe: (name, pass) => observeDeletion(context, name, pass),
    decide: decideDeletionStep,
    actions: deletionActions(context),
  });
}

/** Everything is read live: what is decided on it cannot be undone. */
async function observeDeletion(
  { env, provisioners, attempts }: PersistentVolumeContext,
  name: string,
  { signal }: Pass,
): Promise<DeletionObservation | undefined> {
  const volume = await env.kube.get(resources.persistentVolumes, { name }, { signal });
  if (volume === undefined) return undefined;
  const waitMs = attempts.waitMs(operationOf(volume));
  const isExternal = isMadeExternally(provisioners.plugins, volume);
  return { volume, claim: await liveClaimOf(env, volume, signal), isExternal, waitMs };
}

async function liveClaimOf({ kube }: KubeEnv, { spec }: Stored<PersistentVolume>, signal: AbortSignal) {
  const { namespace = "", name = "" } = spec?.claimRef ?? {};
  if (name === "") return undefined;
  return kube.get(resources.persistentVolumeClaims, { namespace, name }, { signal });
}

function isMadeExternally({ plugins }: VolumePluginManager, volume: PersistentVolume): boolean {
  const provisioner = volume.metadata?.annotations?.[provisionedByAnnotation];
  // An in-tree name without a plugin is an error to report, and no external provisioner (docs/behaviour/controllers.md B5).
  if (provisioner === undefined || provisioner.startsWith("kubernetes.io/")) return false;
  return !plugins.some(({ pluginName }) => pluginName === provisioner);
}

function operationOf(volume: Stored<PersistentVolume>): string {
  return `delete-${volume.metadata.name}[${volume.metadata.uid}]`;
}

type DeletionActions = Actions<DeletionObservation, DeletionStep>;

function deletionActions(context: PersistentVolumeContext): DeletionActions {
  const { env, events, attempts } = context;
  return {
    ...volumeWrites(context),
    wait: ({ ms }) => ({ requeueAfterMs: ms }),
    deleteDisk: (_step, observed, { signal }) => deleteDisk(context, observed, signal),
    report(step, observed) {
      reportOnVolume(events, observed.volume, step);
      return { observed: { ...observed, isReported: true } };
    },
    retry({ error, afterMs }, { volume }) {
      const fields = { operation: operationOf(volume), retryInMs: afterMs, error: errorChain(error) };
      env.logger.warn("volume operation failed", fields);
      return { requeueAfterMs: afterMs };
    },
    settle(_step, { volume }) {
      attempts.forget(operationOf(volume));
      return settled;
    },
  };
}

function volumeWrites({
  env,
  attempts,
}: PersistentVolumeContext): Pick<DeletionActions, "deleteVolume" | "removeFinalizer" | "markFailed"> {
  const { persistentVolumes } = resources;
  return {
    async deleteVolume(_step, observed, { signal }) {
      const { volume } = observed;
      attempts.forget(operationOf(volume));
      // By UID: a volume that has been made under the name since has a disk of its own.
      const { uid } = volume.metadata;
      await env.kube.delete(persistentVolumes, refOf(volume), { signal, uid });
      if (!isKeptForDisk(volume)) return settled;
      const live = await env.kube.get(persistentVolumes, refOf(volume), { signal });
      return live?.metadata.uid === uid ? { observed: { ...observed, volume: live } } : settled;
    },
    async removeFinalizer(_step, { volume }, { signal }) {
      attempts.forget(operationOf(volume));
      await env.kube.update(persistentVolumes, releasedFromDisk(volume), { signal });
      return settled;
    },
    async markFailed(step, observed, { signal }) {
      const volume = await env.kube.updateStatus(resources.persistentVolumes, step.volume, { signal });
      return { observed: { ...observed, volume } };
    },
  };
}

async function deleteDisk(
  { env, provisioners, attempts, measured }: PersistentVolumeContext,
  observed: DeletionObservation,
  signal: AbortSignal,
): Promise<{ readonly observed: DeletionObservation }> {
  const { volume } = observed;
  try {
    const plugin = pluginOf(provisioners.plugins, volume);
    const deleter = deleterOf(plugin, volume);
    const { pluginName } = plugin;
    await measured.measure("volume_delete", { plugin: pluginName, isMigrated: false }, signal, () =>
      withDeadline(env.clock, providerTimeoutMs, signal, (limited) => deleter.delete(limited)),
    );
    return { observed: { ...observed, isDeleted: true } };
  } catch (error) {
    if (signal.aborted) throw error;
    const retryInMs = attempts.failed(operationOf(volume));
    return { observed: { ...observed, failure: { error, retryInMs } } };
  }
}

/** The plugin that deletes the volume: the one that made it, else the one of its source. */
function pluginOf(plugins: VolumePluginManager, volume: Stored<PersistentVolume>): DeletableVolumePlugin {
  const provisioner = volume.metadata.annotations?.[provisionedByAnnotation];
  try {
    return provisioner === undefined
      ? plugins.findDeletablePluginBySpec(specOfPersistentVolume(volume, false))
      : plugins.findDeletablePluginByName(provisioner);
  } catch (cause) {
    throw new Error(`Error getting deleter volume plugin for volume "${volume.metadata.name}"`, { cause });
  }
}

function deleterOf(plugin: DeletableVolumePlugin, volume: Stored<PersistentVolume>): Deleter {
  try {
    return plugin.newDeleter(specOfPersistentVolume(volume, false));
  } catch (cause) {
    throw new Error(`Failed to create deleter for volume "${volume.metadata.name}"`, { cause });
  }
}
