/** Labels by which a provisioner knows its own CSIStorageCapacity objects (docs/behaviour/sidecars.md 2.9). Pure. */

/** Label: the driver whose room it is. */
export const driverNameLabel = "csi.storage.k8s.io/drivername";
/** Label: who keeps the object up to date. */
export const managedByLabel = "csi.storage.k8s.io/managed-by";

const LABEL_VALUE_MAX = 63;

/** Value of {@link managedByLabel}: one of its own for each node where provisioners run node by node. */
export function managedBy(nodeName: string | undefined): string {
  const base = "external-provisioner";
  return nodeName === undefined ? base : shortened(base, nodeName, LABEL_VALUE_MAX);
}

/** `base-suffix`, where it is too long with a hash in place of the end of `base`, or of all of `suffix`. */
function shortened(base: string, suffix: string, lengthMax: number): string {
  const name = `${base}-${suffix}`;
  if (name.length <= lengthMax) return name;
  // Eight digits of the hash, with a dash on either side.
  const room = lengthMax - suffix.length - 10;
  if (room <= 0) return `${base.slice(0, lengthMax - 9)}-${fnv1a(name)}`;
  return `${base.slice(0, room)}-${fnv1a(name)}-${suffix}`;
}

/** FNV-1a, 32 bit, in eight hexadecimal digits. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}
