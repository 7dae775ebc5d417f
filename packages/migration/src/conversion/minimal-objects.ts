/** The new objects of a conversion, for plain volumes. Pure. */
import type { PersistentVolume, PersistentVolumeClaim } from "@longshore/kube";
import { translateInTreePVToCSI } from "@longshore/translation";
import type { ConvertClaim, Converted, ConvertVolume, Difference } from "./conversion-types.ts";

/** Set by the persistent-volume controller when it binds; a claim that has it is taken for bound already. */
const bindAnnotations = [
  "pv.kubernetes.io/bind-completed",
  "pv.kubernetes.io/bound-by-controller",
  "volume.kubernetes.io/selected-node",
  "volume.kubernetes.io/storage-provisioner",
  "volume.beta.kubernetes.io/storage-provisioner",
  "pv.kubernetes.io/migrated-to",
  "volume.kubernetes.io/migrated-to",
];

export const convertedVolume: ConvertVolume = (volume, { newName, rule }) => {
  try {
    const converted: Converted<PersistentVolume> =
      rule === undefined ? { object: translateInTreePVToCSI(volume), differences: [] } : rule.convert(volume);
    if ("failure" in converted) return converted;
    return { object: freshVolume(converted.object, newName), differences: converted.differences };
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
};

export const convertedClaim: ConvertClaim = (claim, newVolumeName) => {
  const { status: _status, ...rest } = claim;
  const metadata = freshMetadata(claim.metadata, ["kubernetes.io/pvc-protection"]);
  const object = { ...rest, metadata, spec: { ...claim.spec, volumeName: newVolumeName } };
  const differences: Difference[] = [
    {
      kind: "PersistentVolumeClaim",
      field: "spec.volumeName",
      before: claim.spec?.volumeName,
      after: newVolumeName,
    },
  ];
  return { object: object as PersistentVolumeClaim, differences };
};

/** The volume as it is created: without what servers and controllers write, pre-bound to its claim's name, policy Retain. */
export function freshVolume(volume: PersistentVolume, newName: string): PersistentVolume {
  const { status: _status, ...rest } = volume;
  const { namespace, name } = volume.spec?.claimRef ?? {};
  const claimRef = { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name };
  return {
    ...rest,
    metadata: { ...freshMetadata(volume.metadata, ["kubernetes.io/pv-protection"]), name: newName },
    spec: { ...volume.spec, claimRef, persistentVolumeReclaimPolicy: "Retain" },
  } as PersistentVolume;
}

function freshMetadata(metadata: PersistentVolume["metadata"], dropped: readonly string[]) {
  const { name, namespace, labels, annotations = {}, ownerReferences, finalizers = [] } = metadata ?? {};
  const kept = finalizers.filter((f) => !dropped.includes(f) && !f.startsWith("external-"));
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(labels === undefined ? {} : { labels }),
    annotations: Object.fromEntries(
      Object.entries(annotations).filter(([key]) => !bindAnnotations.includes(key)),
    ),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
    ...(kept.length === 0 ? {} : { finalizers: kept }),
  };
}
