/** The PersistentVolume that was there before a conversion, as it is created again by an undo. Pure. */
import type { PersistentVolume } from "@longshore/kube";
import { inTreeDeletionFinalizer, provisionerFinalizer } from "@longshore/storage";
import { bindingAnnotations, volumeProtectionFinalizer } from "./objects/controllers-marks.ts";
import { authoredMetadata, defined, withoutKeys } from "./objects/differences.ts";

const dropped: ReadonlySet<string> = new Set(bindingAnnotations);
const controllers = [volumeProtectionFinalizer, inTreeDeletionFinalizer, provisionerFinalizer];

/** Pre-bound to the name of its claim, policy Retain. @param now the volume that stands for the disk meanwhile: an expansion is kept */
export function restoredVolume(
  before: PersistentVolume,
  now: PersistentVolume | undefined,
): PersistentVolume {
  const { namespace, name } = before.spec?.claimRef ?? {};
  const { annotations, finalizers } = before.metadata ?? {};
  const kept = finalizers?.filter(
    (each) => !controllers.includes(each) && !each.startsWith("external-attacher/"),
  );
  const capacity = now?.spec?.capacity ?? before.spec?.capacity;
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: defined({
      ...authoredMetadata(before.metadata),
      annotations: withoutKeys(annotations, dropped),
      finalizers: kept?.length ? kept : undefined,
    }),
    spec: {
      ...before.spec,
      ...(capacity === undefined ? {} : { capacity }),
      claimRef: {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        namespace: namespace ?? "",
        name: name ?? "",
      },
      persistentVolumeReclaimPolicy: "Retain",
    },
  };
}
