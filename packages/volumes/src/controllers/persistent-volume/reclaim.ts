/**
 * Deleting the disk of a released volume, in-tree. Source: docs/behaviour/controllers.md B5, "Delete operation".
 *
 * Invariant: everything is asked again, live, in the operation itself; a volume that is being deleted,
 * in use again or handed to an external provisioner is left alone.
 */
import { type PersistentVolume, resources, type Stored } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { migratedToAnnotation, provisionedByAnnotation } from "@longshore/storage";
import { DeletedVolumeInUseError } from "../../framework/controller-errors.ts";
import type { DeletableVolumePlugin } from "../../framework/plugin.ts";
import { specOfPersistentVolume } from "../../framework/spec.ts";
import { setVolumePhase } from "./bind.ts";
import type { PersistentVolumeContext } from "./context.ts";
import { tellVolume } from "./events.ts";

/** Starts the deletion unless one runs or has to wait. */
export function startDelete(context: PersistentVolumeContext, volume: Stored<PersistentVolume>): void {
  const name = `delete-${volume.metadata.name}[${volume.metadata.uid}]`;
  context.executor.startOperation({ volumeName: name }, name, (signal) =>
    deleteVolume(context, volume.metadata.name, signal),
  );
}

async function deleteVolume(
  context: PersistentVolumeContext,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const { kube } = context.env;
  const volume = await kube.get(resources.persistentVolumes, { name }, { signal });
  if (volume === undefined || volume.metadata.deletionTimestamp !== undefined) return;
  if ((volume.metadata.annotations?.[migratedToAnnotation] ?? "") !== "") return;
  if (!(await isReleased(context, volume, signal))) return;
  try {
    const plugin = deleterOf(context, volume);
    if (plugin === undefined) return; // An external provisioner made it, and deletes it.
    await plugin.newDeleter(specOfPersistentVolume(volume, false)).delete(signal);
  } catch (error) {
    if (signal.aborted) throw error;
    const message = errorChain(error);
    if (error instanceof DeletedVolumeInUseError)
      tellVolume(context, volume, "Normal", "VolumeDelete", message);
    else {
      await setVolumePhase(context, volume, "Failed", signal, message);
      tellVolume(context, volume, "Warning", "VolumeFailedDelete", message);
    }
    throw error;
  }
  await kube.delete(resources.persistentVolumes, { name }, { signal, uid: volume.metadata.uid });
}

/** The plugin that deletes the volume: the one that made it, else the one of its source; undefined: external. */
function deleterOf(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
): DeletableVolumePlugin | undefined {
  const provisioner = volume.metadata.annotations?.[provisionedByAnnotation];
  try {
    if (provisioner === undefined) {
      return context.plugins.findDeletablePluginBySpec(specOfPersistentVolume(volume, false));
    }
    if (context.plugins.plugins.some(({ pluginName }) => pluginName === provisioner)) {
      return context.plugins.findDeletablePluginByName(provisioner);
    }
    if (!provisioner.startsWith("kubernetes.io/")) return undefined;
    return context.plugins.findDeletablePluginByName(provisioner);
  } catch (error) {
    throw new Error(`Error getting deleter volume plugin for volume "${volume.metadata.name}"`, {
      cause: error,
    });
  }
}

/** Whether the claim is gone, asked live, or has taken another volume. */
async function isReleased(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
  signal: AbortSignal,
): Promise<boolean> {
  const ref = volume.spec?.claimRef;
  if (ref == null || (ref.uid ?? "") === "") return false;
  const claim = await context.env.kube.get(
    resources.persistentVolumeClaims,
    { namespace: ref.namespace ?? "", name: ref.name ?? "" },
    { signal },
  );
  if (claim?.metadata.uid !== ref.uid) return true;
  const taken = claim?.spec?.volumeName ?? "";
  return taken !== "" && taken !== volume.metadata.name;
}
