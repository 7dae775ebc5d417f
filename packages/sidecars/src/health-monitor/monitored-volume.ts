/** Which volumes the health monitor checks, and what it reports about them. Pure. */
import { isDeleting, type ObjectReference, type PersistentVolume } from "@longshore/kube";
import { migratedToAnnotation } from "@longshore/storage";
import { isPVMigratable, translateInTreePVToCSI } from "@longshore/translation";

/** A volume of the driver that a claim uses. */
export interface MonitoredVolume {
  readonly pvName: string;
  /** The driver's name of it. */
  readonly volumeHandle: string;
  /** The claim, as events refer to it. */
  readonly claim: ObjectReference;
}

/** What the driver says of a volume (CSI, VolumeCondition). */
export interface VolumeHealth {
  readonly abnormal: boolean;
  readonly message: string;
}

/** An event about a claim. */
export interface HealthEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

/** Reason of the event while a volume is not well. */
export const abnormalReason = "VolumeConditionAbnormal";
/** Reason of the event when it is well again. */
export const normalReason = "VolumeConditionNormal";

/** The volume, if it is bound and served by `driver`; an in-tree one only while it is migrated to it. */
export function monitoredVolume(pv: PersistentVolume, driver: string): MonitoredVolume | undefined {
  if (isDeleting(pv) || pv.status?.phase !== "Bound") return undefined;
  const { claimRef } = pv.spec ?? {};
  if (claimRef?.uid === undefined) return undefined;
  const volumeHandle = handleOf(pv, driver);
  if (volumeHandle === undefined || volumeHandle === "") return undefined;
  const { name = "", namespace = "", uid } = claimRef;
  const claim = { apiVersion: "v1", kind: "PersistentVolumeClaim", name, namespace, uid };
  return { pvName: pv.metadata?.name ?? "", volumeHandle, claim };
}

function handleOf(pv: PersistentVolume, driver: string): string | undefined {
  let { csi } = pv.spec ?? {};
  if (csi == null && pv.metadata?.annotations?.[migratedToAnnotation] === driver && isPVMigratable(pv)) {
    try {
      csi = (translateInTreePVToCSI(pv) as PersistentVolume).spec?.csi;
    } catch {
      // A volume without a CSI form has no condition; the attacher reports the error.
      return undefined;
    }
  }
  return csi?.driver === driver ? csi.volumeHandle : undefined;
}

/**
 * The event to send after a look at a volume. An abnormal condition is reported at every look, so that its event does
 * not expire while it lasts; a normal one only after an abnormal one.
 * @param health what the driver says; undefined: nothing
 */
export function healthEvent(health: VolumeHealth | undefined, wasAbnormal: boolean): HealthEvent | undefined {
  if (health?.abnormal === true) return { type: "Warning", reason: abnormalReason, message: health.message };
  if (health === undefined || !wasAbnormal) return undefined;
  return { type: "Normal", reason: normalReason, message: "The Volume returns to the healthy state" };
}

/** A segment of a handle that the translation could not know; the driver lists the volume with its real value. */
const unspecified = "UNSPECIFIED";

/** The listed health of a volume. A segment that a translated handle leaves open fits any, if only one volume fits. */
export function listedHealth(
  volumeHandle: string,
  listed: ReadonlyMap<string, VolumeHealth>,
): VolumeHealth | undefined {
  const exact = listed.get(volumeHandle);
  const segments = volumeHandle.split("/");
  if (exact !== undefined || !segments.includes(unspecified)) return exact;
  const fitting = [...listed].filter(([handle]) => {
    const others = handle.split("/");
    if (others.length !== segments.length) return false;
    return segments.every((segment, at) => segment === unspecified || segment === others[at]);
  });
  return fitting.length === 1 ? fitting[0]?.[1] : undefined;
}
