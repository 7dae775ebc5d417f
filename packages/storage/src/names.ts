/** Names that several components must compute alike. */
import { createHash } from "node:crypto";

/** Something that a name is made of is missing. */
export class NameError extends Error {
  override readonly name = "NameError";
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The VolumeAttachment of a volume on a node (Kubernetes `csi_attacher.go`, getAttachmentName). Others find it by computing its name. */
export function attachmentName(volumeHandle: string, driver: string, nodeName: string): string {
  return `csi-${sha256(volumeHandle + driver + nodeName)}`;
}

/** The same in the first design document, which real clusters never see. */
export function attachmentNameByPV(pvName: string, nodeName: string): string {
  return `pv-${sha256(pvName + nodeName)}`;
}

/** The CSI plugin's own name of a volume (Kubernetes `csi_plugin.go`, GetVolumeName). */
export function csiVolumeName(driver: string, volumeHandle: string): string {
  return `${driver}^${volumeHandle}`;
}

/** A CSI volume's name in `volumesInUse` and `volumesAttached`. */
export function csiUniqueVolumeName(driver: string, volumeHandle: string): string {
  return `kubernetes.io/csi/${csiVolumeName(driver, volumeHandle)}`;
}

/** Volume handle of an ephemeral inline CSI volume (Kubernetes `csi_plugin.go`, makeVolumeHandle). */
export function inlineVolumeHandle(podUID: string, volumeSpecName: string): string {
  return `csi-${sha256(podUID + volumeSpecName)}`;
}

/** Letters, digits and dashes only, not ending in a dash (csi-lib-utils, sanitizing of lease names). */
function sanitised(text: string): string {
  const clean = text.replace(/[^a-zA-Z0-9-]/gu, "-");
  return clean.endsWith("-") ? `${clean}X` : clean;
}

/** The attacher's finalizer on VolumeAttachments and volumes. */
export function attacherFinalizer(driver: string): string {
  return `external-attacher/${sanitised(driver)}`;
}

/** Sidecars that elect a leader for each driver. */
export type ElectedSidecar = "attacher" | "provisioner" | "resizer" | "snapshotter" | "health-monitor";

/** Name of the lease over which the instances of a sidecar elect their leader (docs/behaviour/sidecars.md 1). */
export function leaseName(sidecar: ElectedSidecar, driver: string): string {
  switch (sidecar) {
    case "provisioner":
      return sanitised(driver.replaceAll("/", "-"));
    case "attacher":
    case "snapshotter":
    case "health-monitor":
      return sanitised(`external-${sidecar}-leader-${driver}`);
    case "resizer":
      return sanitised(`external-resizer-${driver}`);
  }
}

/**
 * Name of a provisioned volume, at the driver as well as of its PV: `pvc-<uid>`.
 * @param uuidLength −1: the uid as it is; else so many of its characters, dashes left out
 * @throws NameError when prefix or uid is empty
 */
export function volumeName(prefix: string, pvcUID: string, uuidLength = -1): string {
  if (prefix === "") throw new NameError("volume name prefix is empty: set `volumeNamePrefix`");
  if (pvcUID === "") throw new NameError("claim has no metadata.uid: it was not read from an API server");
  return `${prefix}-${cut(pvcUID, uuidLength)}`;
}

/** Name of a snapshot at the driver, likewise. @throws NameError when prefix or uid is empty */
export function snapshotName(prefix: string, snapshotUID: string, uuidLength = -1): string {
  if (prefix === "") {
    throw new NameError(
      "snapshot name prefix is empty: set `snapshotNamePrefix`, or `groupSnapshotNamePrefix` for groups",
    );
  }
  if (snapshotUID === "") {
    throw new NameError("snapshot has no metadata.uid: it was not read from an API server");
  }
  return `${prefix}-${cut(snapshotUID, uuidLength)}`;
}

/** Name of the VolumeSnapshotContent of a dynamic snapshot. */
export function snapshotContentName(snapshotUID: string): string {
  return `snapcontent-${snapshotUID}`;
}

function cut(uid: string, length: number): string {
  return length === -1 ? uid : uid.replaceAll("-", "").slice(0, length);
}

/** Name that the in-tree cloud plugins give to a new disk (Kubernetes `volume/util`, GenerateVolumeName). */
export function generateVolumeName(clusterName: string, pvName: string, maxLength: number): string {
  const prefix = `${clusterName}-dynamic`;
  // Only the cluster's part is cut: the volume's makes the name unique.
  const room = Math.max(0, maxLength - pvName.length - 1);
  return `${prefix.slice(0, room)}-${pvName}`;
}

const dns1123Label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const dns1123Subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Whether `text` can name a namespace (RFC 1123 label). */
export function isDns1123Label(text: string): boolean {
  return text.length <= 63 && dns1123Label.test(text);
}

/** Whether `text` can name a secret (RFC 1123 subdomain). */
export function isDns1123Subdomain(text: string): boolean {
  return text.length <= 253 && dns1123Subdomain.test(text);
}

/** What the API server finds wrong with a CSI driver's name; empty: nothing (Kubernetes, ValidateCSIDriverName). */
export function csiDriverNameErrors(driver: string): readonly string[] {
  const errors: string[] = [];
  // Kubernetes reports an empty name as required, with no text of its own.
  if (driver === "") errors.push("");
  if (driver.length > 63) errors.push("must be no more than 63 characters");
  // Kubernetes compares in lower case, so a name with capitals passes.
  const lower = driver.toLowerCase();
  if (lower.length > 253) errors.push("must be no more than 253 characters");
  if (!dns1123Subdomain.test(lower)) {
    errors.push(
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    );
  }
  return errors;
}
