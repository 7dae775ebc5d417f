/** Pods and StatefulSets whose volumes are devices instead of directories. */
import type { PersistentVolumeClaim, Pod, PodSpec, StatefulSet } from "@longshore/kube";

/** The pod with each volume as a device at the path where it would be mounted. */
export function withDevices(pod: Pod): Pod {
  return pod.spec === undefined ? pod : { ...pod, spec: specWithDevices(pod.spec) };
}

/** The StatefulSet with the volumes of its claims as devices. */
export function setWithDevices(set: StatefulSet): StatefulSet {
  const { spec } = set;
  if (spec?.template.spec === undefined) return set;
  const template = { ...spec.template, spec: specWithDevices(spec.template.spec) };
  const volumeClaimTemplates = (spec.volumeClaimTemplates ?? []).map(blockClaim);
  return { ...set, spec: { ...spec, template, volumeClaimTemplates } };
}

function specWithDevices(spec: PodSpec): PodSpec {
  const containers = spec.containers.map(({ volumeMounts, ...container }) => ({
    ...container,
    volumeDevices: (volumeMounts ?? []).map(({ name, mountPath }) => ({ name, devicePath: mountPath })),
  }));
  return { ...spec, containers };
}

function blockClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return { ...claim, spec: { ...claim.spec, volumeMode: "Block" } };
}
