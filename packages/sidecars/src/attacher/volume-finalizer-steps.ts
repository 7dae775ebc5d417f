/**
 * Takes the attacher's finalizer off a PersistentVolume once nothing can need it (docs/behaviour/sidecars.md 3.3): the
 * volume is being deleted, or it is in-tree and no longer migrated to this driver, and no attachment names it.
 *
 * The keys of this queue are volumes, those of the other are attachments. Both write to a volume's finalizers, and cannot
 * race: this one removes only where the cache has no attachment of the volume, and an attachment that arrives later finds
 * the removal in {@link VolumeReleases} and waits for it.
 */
import {
  type Actions,
  forResource,
  isNotFound,
  type JsonPatchStep,
  patchAsSeen,
  removeFinalizerPatch,
  resources,
  type Source,
  type Steps,
  settled,
  source,
} from "@longshore/kube";
import { volumeNameOf } from "../common/attachments.ts";
import type { AttachCaches, AttachContext } from "./attach-context.ts";
import {
  decideVolumeFinalizer,
  hasStaleFinalizer,
  type ObservedVolume,
  type VolumeFinalizerStep,
} from "./decide-volume-finalizer.ts";

/** Which changes wake the volumes of a driver. The end of an attachment wakes its volume. */
export function volumeSources(
  { driver, releases }: AttachContext,
  { attachments, volumes }: AttachCaches,
): readonly Source[] {
  return [
    forResource(volumes, { selects: (pv) => hasStaleFinalizer(pv, driver.name), deleted: "forget" }),
    source(() => volumes.onChange({ deleted: ({ metadata }) => releases.forget(metadata.name) })),
    source((wake) =>
      attachments.onChange({
        deleted: (va) => {
          const pvName = volumeNameOf(va);
          if (va.spec?.attacher === driver.name && pvName !== undefined) wake(pvName);
        },
      }),
    ),
  ];
}

/** The parts of the controller over the volumes of a driver. */
export function volumeFinalizerSteps(context: AttachContext): Steps<ObservedVolume, VolumeFinalizerStep> {
  return {
    observe: (name) => observeVolume(context, name),
    decide: decideVolumeFinalizer,
    actions: volumeFinalizerActions(context),
  };
}

function observeVolume(
  { volumes, attachments, driver }: AttachContext,
  name: string,
): ObservedVolume | undefined {
  const volume = volumes.get(name);
  if (volume === undefined) return undefined;
  const isAttached = attachments.byIndex("byVolume", name).length > 0;
  return { volume, driverName: driver.name, isAttached };
}

function volumeFinalizerActions({
  env,
  rules,
  releases,
}: AttachContext): Actions<ObservedVolume, VolumeFinalizerStep> {
  return {
    settle: () => settled,
    removeVolumeFinalizer: async (_, { volume }, { key: name, signal }) => {
      const body: JsonPatchStep[] = [
        // With it the patch fails on another volume of the same name.
        { op: "test", path: "/metadata/uid", value: volume.metadata.uid },
        ...removeFinalizerPatch(volume.metadata.finalizers, rules.finalizer),
      ];
      // Before the request: an attachment that arrives while it is under way must find the removal.
      releases.begin(volume);
      try {
        await patchAsSeen(env.kube, resources.persistentVolumes, { name }, body, { signal });
      } catch (error) {
        releases.forget(name);
        if (!isNotFound(error)) throw error;
      }
      return settled;
    },
  };
}
