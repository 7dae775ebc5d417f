/**
 * What volumes of the reference driver can do: one node at a time, mounted or as a block device; of some drivers several nodes may
 * read, and all may have a share.
 */
import {
  CsiStatusError,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapability,
} from "@longshore/csi";
import type { DriverKind } from "./kinds/driver-kind.ts";

/** What a driver can do depends on its kind. */
export type CapableKind = Pick<DriverKind, "sharedModes" | "isShare">;

const modesOfOneNode: ReadonlySet<number> = new Set([
  Mode.SINGLE_NODE_WRITER,
  Mode.SINGLE_NODE_READER_ONLY,
  Mode.SINGLE_NODE_SINGLE_WRITER,
  Mode.SINGLE_NODE_MULTI_WRITER,
]);

const diskFileSystems: readonly string[] = ["", "ext3", "ext4", "xfs", "btrfs"];
const shareFileSystems: readonly string[] = ["", "cifs", "smb"];

/** Why the capability is not supported, or undefined. */
export function unsupportedReason(capability: VolumeCapability, kind: CapableKind): string | undefined {
  const { accessType, accessMode } = capability;
  if (accessType.case === undefined) return "volume_capability has neither block nor mount";
  if (accessMode === undefined) return "volume_capability.access_mode is required";
  if (!modesOfOneNode.has(accessMode.mode) && !kind.sharedModes.includes(accessMode.mode)) {
    return `access mode ${nameOfMode(accessMode.mode)} is not supported: a disk has one node at a time`;
  }
  if (accessType.case !== "mount") {
    return kind.isShare ? "a share of files is no block device: use volumeMode Filesystem" : undefined;
  }
  const { fsType, volumeMountGroup } = accessType.value;
  if (!(kind.isShare ? shareFileSystems : diskFileSystems).includes(fsType))
    return `fs_type ${fsType} is not supported`;
  if (volumeMountGroup !== "" && gidOf(volumeMountGroup) === undefined) {
    return "volume_mount_group is not the number of a group";
  }
  return undefined;
}

/** @throws CsiStatusError INVALID_ARGUMENT */
export function checkCapability(
  capability: VolumeCapability | undefined,
  kind: CapableKind,
): VolumeCapability {
  if (capability === undefined) throw new CsiStatusError("INVALID_ARGUMENT", "volume_capability is required");
  const reason = unsupportedReason(capability, kind);
  if (reason !== undefined) throw new CsiStatusError("INVALID_ARGUMENT", reason);
  return capability;
}

/** Whether the access mode alone forbids writing. */
export function isReaderMode(capability: VolumeCapability): boolean {
  return capability.accessMode?.mode === Mode.SINGLE_NODE_READER_ONLY || isForReaders(capability);
}

/** Whether pods of several nodes may read the volume, and none may write. */
export function isForReaders(capability: VolumeCapability): boolean {
  return capability.accessMode?.mode === Mode.MULTI_NODE_READER_ONLY;
}

/** Whether only one pod may have the volume. */
export function isSingleWriter(capability: VolumeCapability): boolean {
  return capability.accessMode?.mode === Mode.SINGLE_NODE_SINGLE_WRITER;
}

/** The group that a mounted volume is to belong to. */
export function mountGroupOf(capability: VolumeCapability): number | undefined {
  return capability.accessType.case === "mount"
    ? gidOf(capability.accessType.value.volumeMountGroup)
    : undefined;
}

/**
 * What a volume is attached for, in words to compare. SINGLE_NODE_WRITER and SINGLE_NODE_MULTI_WRITER are one: a CO
 * that starts to use the second also sends it for volumes that it published with the first.
 */
export function useOf(capability: VolumeCapability): string {
  const access = isReaderMode(capability) ? "reading" : isSingleWriter(capability) ? "one writer" : "writing";
  if (capability.accessType.case === "block") return `block device, ${access}`;
  return `file system ${fsTypeOf(capability) ?? "of any kind"}, ${access}`;
}

/** The file system that is requested, if any is. */
export function fsTypeOf(capability: VolumeCapability): string | undefined {
  const fsType = capability.accessType.case === "mount" ? capability.accessType.value.fsType : "";
  return fsType === "" ? undefined : fsType;
}

function gidOf(group: string): number | undefined {
  return /^\d{1,10}$/.test(group) && Number(group) < 2 ** 32 - 1 ? Number(group) : undefined;
}

function nameOfMode(mode: number): string {
  return Object.entries(Mode).find(([, value]) => value === mode)?.[0] ?? String(mode);
}
