/** Disks by the ids that their providers gave them. Two providers may use one id; each finds its own disk. */
import { CloudError } from "@longshore/volumes";
import type { CloudState, DiskRecord } from "./cloud-state.ts";
import { type Provider, providerOf } from "./providers/index.ts";

/** The id by which callers know the disk. */
export function idOf(disk: DiskRecord): string {
  return disk.providerId ?? disk.id;
}

/** One text for all forms of a disk's id: key of its lock, and of the index. */
export function keyOf(provider: Provider, diskId: string): string {
  return `${provider.name} ${provider.canonicalId?.(diskId) ?? diskId}`;
}

/** Records are replaced, never changed, so an index holds as long as its map of disks. */
const indexes = new WeakMap<CloudState["disks"], ReadonlyMap<string, DiskRecord>>();

function indexOf({ disks }: CloudState): ReadonlyMap<string, DiskRecord> {
  const present = indexes.get(disks);
  if (present !== undefined) return present;
  const index = new Map<string, DiskRecord>();
  for (const disk of Object.values(disks)) {
    const key = keyOf(providerOf(disk), idOf(disk));
    // A disk that is being deleted leaves its name to the next one.
    if (disk.state !== "deleting" || !index.has(key)) index.set(key, disk);
  }
  indexes.set(disks, index);
  return index;
}

/** The provider's disk with this id, also while it is being deleted. */
export function findDisk(state: CloudState, provider: Provider, diskId: string): DiskRecord | undefined {
  return indexOf(state).get(keyOf(provider, diskId));
}

/** @throws CloudError NotFound */
export function diskOf(state: CloudState, provider: Provider, diskId: string): DiskRecord {
  const disk = findDisk(state, provider, diskId);
  if (disk === undefined || disk.state === "deleting") {
    throw new CloudError("NotFound", `there is no disk ${diskId}`);
  }
  return disk;
}

/** The provider's disks that are not being deleted. */
export function disksOf(state: CloudState, provider: Provider): readonly DiskRecord[] {
  return Object.values(state.disks).filter(
    (disk) => disk.state !== "deleting" && providerOf(disk) === provider,
  );
}
