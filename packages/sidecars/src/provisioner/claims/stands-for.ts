/** Whether a PersistentVolume is the object of a volume that the driver has made. Pure. */
import type { PersistentVolume } from "@longshore/kube";
import { isPVMigratable, translateCSIPVToInTree, translateInTreePVToCSI } from "@longshore/translation";

/**
 * Whether the stored object is that of the driver's volume. In-tree forms of a handle can say less than the driver's,
 * so both are translated the same way; forms without a difference count as the same.
 */
export function standsFor(
  stored: PersistentVolume,
  driverName: string,
  volumeId: string,
  migrated: boolean,
): boolean {
  try {
    const storedHandle = handleOf(stored);
    if (storedHandle === volumeId) return true;
    if (!migrated || !isPVMigratable(stored)) return false;
    const bare = { spec: { csi: { driver: driverName, volumeHandle: volumeId } } } as PersistentVolume;
    return handleOf(translateCSIPVToInTree(bare) as PersistentVolume) === storedHandle;
  } catch {
    // What cannot be compared may be the object's disk, and a deleted disk cannot be restored.
    return true;
  }
}

function handleOf(pv: PersistentVolume): string | undefined {
  return (isPVMigratable(pv) ? (translateInTreePVToCSI(pv) as PersistentVolume) : pv).spec?.csi?.volumeHandle;
}
