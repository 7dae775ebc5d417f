/** What a crossing reads off a pod: pure functions of it and of the volumes it uses. */
import type { PersistentVolume, PersistentVolumeClaim, Pod, Stored, Volume } from "@longshore/kube";
import { getInTreePluginNameFromSpec, isInlineMigratable, isPVMigratable } from "@longshore/translation";
import type { CrossingSubject } from "./crossing-subject.ts";

/** Finds the volumes of pods. */
export interface VolumeIndex {
  /** The PersistentVolumes that the pod's claims are bound to. */
  boundTo(pod: Stored<Pod>): Stored<PersistentVolume>[];
}

/** Makes the index. */
export function volumeIndex(
  claims: readonly Stored<PersistentVolumeClaim>[],
  volumes: readonly Stored<PersistentVolume>[],
): VolumeIndex {
  const volumeOfClaim = new Map(
    claims.map(({ metadata, spec }) => [`${metadata.namespace}/${metadata.name}`, spec?.volumeName]),
  );
  const byName = new Map(volumes.map((pv) => [pv.metadata.name, pv]));
  return {
    boundTo: (pod) =>
      (pod.spec?.volumes ?? []).flatMap((volume) => {
        const claimName = claimNameOf(pod, volume);
        if (claimName === undefined) return [];
        return byName.get(volumeOfClaim.get(`${pod.metadata.namespace}/${claimName}`) ?? "") ?? [];
      }),
  };
}

/** The claim of a pod's volume; that of a generic ephemeral one is named for the pod (KEP-1698). */
function claimNameOf(pod: Stored<Pod>, volume: Volume): string | undefined {
  if (volume.ephemeral != null) return `${pod.metadata.name}-${volume.name}`;
  return volume.persistentVolumeClaim?.claimName;
}

/** Why a drain leaves the pod where it is, or undefined when it evicts it. */
export function leftByDrain(pod: Pod): "DaemonSet" | "mirror" | undefined {
  if (pod.metadata?.annotations?.["kubernetes.io/config.mirror"] !== undefined) return "mirror";
  const owner = pod.metadata?.ownerReferences?.find((o) => o.controller === true);
  return owner?.kind === "DaemonSet" ? "DaemonSet" : undefined;
}

/** True when the pod uses a volume of the plugin, bound or inline, or one that was the driver's from the start. */
export function usesPluginOrDriver(
  subject: CrossingSubject,
  pod: Stored<Pod>,
  volumes: VolumeIndex,
): boolean {
  if (inlineVolumesOf(subject, pod).length > 0) return true;
  return volumes
    .boundTo(pod)
    .some((pv) => isVolumeOfPlugin(subject, pv) || pv.spec?.csi?.driver === subject.driverName);
}

/** True when the PersistentVolume is of the in-tree plugin. */
export function isVolumeOfPlugin(subject: CrossingSubject, pv: PersistentVolume): boolean {
  return isPVMigratable(pv) && getInTreePluginNameFromSpec(pv, null) === subject.inTreeName;
}

/** The plugin's volumes that the pod's own spec describes. */
export function inlineVolumesOf(subject: CrossingSubject, pod: Pod): Volume[] {
  return (pod.spec?.volumes ?? []).filter(
    (volume) =>
      isInlineMigratable(volume) && getInTreePluginNameFromSpec(null, volume) === subject.inTreeName,
  );
}

/** True when the pod reports the condition Ready. */
export function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.some((c) => c.type === "Ready" && c.status === "True") === true;
}

/** `namespace/name`. */
export function nameOf(pod: Stored<Pod>): string {
  return `${pod.metadata.namespace ?? "default"}/${pod.metadata.name}`;
}
