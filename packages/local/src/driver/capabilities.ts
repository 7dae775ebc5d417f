/** What volumes of the reference driver can do: one node at a time, mounted or as a block device. */
import {
  CsiStatusError,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapability,
} from "@longshore/csi";

const supportedModes: ReadonlySet<number> = new Set([
  Mode.SINGLE_NODE_WRITER,
  Mode.SINGLE_NODE_READER_ONLY,
  Mode.SINGLE_NODE_SINGLE_WRITER,
  Mode.SINGLE_NODE_MULTI_WRITER,
]);

const supportedFileSystems: ReadonlySet<string> = new Set(["", "ext3", "ext4", "xfs", "btrfs"]);

/** Why the capability cannot be had, or undefined. */
export function unsupportedReason(capability: VolumeCapability): string | undefined {
  const { accessType, accessMode } = capability;
  if (accessType.case === undefined) return "volume_capability has neither block nor mount";
  if (accessMode === undefined) return "volume_capability.access_mode is required";
  if (!supportedModes.has(accessMode.mode)) {
    return `access mode ${nameOfMode(accessMode.mode)} is not supported: a disk has one node at a time`;
  }
  if (accessType.case === "mount" && !supportedFileSystems.has(accessType.value.fsType)) {
    return `fs_type ${accessType.value.fsType} is not supported`;
  }
  return undefined;
}

/** @throws CsiStatusError INVALID_ARGUMENT */
export function checkCapability(capability: VolumeCapability | undefined): VolumeCapability {
  if (capability === undefined) throw new CsiStatusError("INVALID_ARGUMENT", "volume_capability is required");
  const reason = unsupportedReason(capability);
  if (reason !== undefined) throw new CsiStatusError("INVALID_ARGUMENT", reason);
  return capability;
}

/** Whether the access mode alone forbids writing. */
export function isReaderMode(capability: VolumeCapability): boolean {
  const mode = capability.accessMode?.mode;
  return mode === Mode.SINGLE_NODE_READER_ONLY || mode === Mode.MULTI_NODE_READER_ONLY;
}

function nameOfMode(mode: number): string {
  return Object.entries(Mode).find(([, value]) => value === mode)?.[0] ?? String(mode);
}
