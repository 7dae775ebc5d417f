/** NodeGetVolumeStats and NodeExpandVolume: a volume where it is staged or published. */
import {
  CsiStatusError,
  type NodeExpandVolumeRequest,
  type NodeGetVolumeStatsRequest,
  VolumeUsage_Unit as Unit,
} from "@longshore/csi";
import { type Host, HostError, type Mount } from "@longshore/runtime";
import { checkCapability } from "./check-capability.ts";
import { topMount } from "./mounted-paths.ts";
import type { NodeMachine } from "./node-machine.ts";

/** Usage in bytes and inodes (of a block volume its size), and whether something is wrong. */
export async function volumeStats(
  node: NodeMachine,
  request: NodeGetVolumeStatsRequest,
  signal: AbortSignal,
) {
  const { host } = node;
  const { volumeId, volumePath } = request;
  const mount = await volumeAt(node, volumeId, volumePath, signal);
  const stat = await host.stat(volumePath);
  const volumeCondition = await conditionOf(node, volumeId, volumePath, mount);
  if (stat?.kind !== "directory") {
    return { usage: [{ total: BigInt(stat?.sizeBytes ?? 0), unit: Unit.BYTES }], volumeCondition };
  }
  const usage = await host.usage(volumePath);
  const inodes = usageOf(usage.totalInodes, usage.availableInodes, Unit.INODES);
  return {
    usage: [
      usageOf(usage.totalBytes, usage.availableBytes, Unit.BYTES),
      // A file system that makes inodes as it needs them has no number of them.
      ...(usage.totalInodes > 0 ? [inodes] : []),
    ],
    volumeCondition,
  };
}

/** Grows the file system to the volume's size; a block volume has it already. */
export async function expandVolume(node: NodeMachine, request: NodeExpandVolumeRequest, signal: AbortSignal) {
  const { host } = node;
  const { volumeId, volumePath, volumeCapability } = request;
  if (volumeCapability !== undefined) checkCapability(volumeCapability, node.kind);
  const { sizeBytes } = await node.existing(volumeId, signal);
  const mount = await volumeAt(node, volumeId, volumePath, signal);
  const { requiredBytes = 0n, limitBytes = 0n } = request.capacityRange ?? {};
  if (limitBytes !== 0n && limitBytes < requiredBytes) {
    throw new CsiStatusError("INVALID_ARGUMENT", "capacity_range.limit_bytes is below required_bytes");
  }
  if (requiredBytes > sizeBytes || (limitBytes !== 0n && limitBytes < sizeBytes)) {
    throw new CsiStatusError(
      "OUT_OF_RANGE",
      `volume ${volumeId} has ${sizeBytes} bytes: ControllerExpandVolume decides that`,
    );
  }
  const isBlock = (await host.stat(volumePath))?.kind !== "directory";
  if (!isBlock && !node.kind.isShare) {
    const { devicePath } = await node.attachment(volumeId, signal);
    await grow(host, devicePath, mount.target);
  }
  return { capacityBytes: sizeBytes };
}

async function grow(host: Host, device: string, path: string): Promise<void> {
  try {
    await host.growFileSystem(device, path);
  } catch (error) {
    if (!(error instanceof HostError && error.code === "EPERM")) throw error;
    throw new CsiStatusError(
      "FAILED_PRECONDITION",
      "the kernel lets this process grow the file system only unmounted (it lacks CAP_SYS_RESOURCE): " +
        "it is grown when the volume is staged next",
      { cause: error },
    );
  }
}

/** What is mounted there. @throws CsiStatusError NOT_FOUND when there is no such volume, or it is not there */
async function volumeAt(
  node: NodeMachine,
  volumeId: string,
  path: string,
  signal: AbortSignal,
): Promise<Mount> {
  const record = await node.records.of(volumeId);
  const isRecorded = record.publications[path] !== undefined || record.stagings[path] !== undefined;
  const isPath = path.startsWith("/") && !path.split("/").includes("..") && !path.includes("\0");
  const mount = isPath ? await topMount(node.host, path) : undefined;
  if (mount !== undefined && isRecorded) return mount;
  await node.existing(volumeId, signal);
  if (mount !== undefined) {
    // These records have no staging of the volume: find the device through the node's attachment.
    const { devicePath } = await node.attachment(volumeId, signal);
    const isBlock = (await node.host.stat(path))?.kind !== "directory";
    if (isBlock || node.kind.isShare || mount.source === devicePath) return mount;
  }
  throw new CsiStatusError("NOT_FOUND", `volume ${volumeId} is not at that volume_path`);
}

async function conditionOf(node: NodeMachine, volumeId: string, path: string, mount: Mount) {
  const { publications, stagings } = await node.records.of(volumeId);
  const readOnly = publications[path]?.readOnly;
  const isBlock = publications[path]?.isBlock ?? stagings[path]?.isBlock ?? false;
  if (!isBlock && (await isGone(node.host, mount.source))) {
    return { abnormal: true, message: `the device ${mount.source} of the volume is gone` };
  }
  // The kernel makes a file system read-only when it finds errors in it. Source: ext4(5), errors=remount-ro.
  if (!isBlock && readOnly === false && mount.readOnly) {
    return { abnormal: true, message: "the volume has become read-only: its file system may have errors" };
  }
  return { abnormal: false, message: "the volume is healthy" };
}

async function isGone(host: Host, source: string): Promise<boolean> {
  return source.startsWith("/") && (await host.stat(source)) === undefined;
}

function usageOf(total: number, available: number, unit: Unit) {
  return { total: BigInt(total), available: BigInt(available), used: BigInt(total - available), unit };
}
