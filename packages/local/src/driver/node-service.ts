/**
 * The node service of the reference driver: stages a disk's file system and binds it to pods.
 *
 * Invariants
 *  - Nothing is kept in memory but which volumes are being worked on: after a crash at any `await` the
 *    same call brings things to their end, from what is mounted.
 *  - The device is the one that the cloud has attached here now. A path in a publish context may be old,
 *    and a device name is used again for another disk.
 *  - A device that holds a file system is never formatted; a directory with data is never removed.
 */
import {
  type CsiServices,
  CsiStatusError,
  NodeServiceCapability_RPC_Type as Rpc,
  type VolumeCapability,
  VolumeUsage_Unit,
} from "@longshore/csi";
import { type Host, HostError, type Mount } from "@longshore/runtime";
import type { Disk, DiskCloud, Instance } from "@longshore/volumes";
import { checkCapability, isReaderMode } from "./capabilities.ts";
import type { DriverKind } from "./driver-kinds.ts";
import { answering, required } from "./statuses.ts";

const defaultFsType = "ext4";
const capabilities = [Rpc.STAGE_UNSTAGE_VOLUME, Rpc.GET_VOLUME_STATS, Rpc.EXPAND_VOLUME];

/** What the service needs. */
export interface NodeServiceOptions {
  readonly host: Host;
  readonly cloud: DiskCloud;
  readonly kind: DriverKind;
  readonly nodeName: string;
}

/** Builds the service. */
export function nodeService(options: NodeServiceOptions): NonNullable<CsiServices["node"]> {
  const { host, cloud, kind, nodeName } = options;
  const busy = new Set<string>();

  /** One call at a time for each volume; the second is told to come again. */
  function alone<T>(volumeId: string, work: () => Promise<T>): Promise<T> {
    return answering(async () => {
      if (busy.has(volumeId)) {
        throw new CsiStatusError("ABORTED", `another call for volume ${volumeId} is under way: try again`);
      }
      busy.add(volumeId);
      try {
        return await work();
      } finally {
        busy.delete(volumeId);
      }
    });
  }

  async function thisInstance(signal: AbortSignal): Promise<Instance> {
    const instance = await cloud.describeInstance(nodeName, signal);
    if (instance === undefined) {
      throw new CsiStatusError(
        "UNAVAILABLE",
        `the disk cloud has no instance for node ${nodeName}: register it`,
      );
    }
    return instance;
  }

  async function findDisk(volumeId: string, signal: AbortSignal): Promise<Disk> {
    const disk = kind.usesCloudIds
      ? await cloud.describeDisk(volumeId, signal)
      : (await cloud.listDisks(signal)).find((d) => kind.isVolumeId(volumeId, d));
    if (disk === undefined) throw new CsiStatusError("NOT_FOUND", `volume ${volumeId} does not exist`);
    return disk;
  }

  /** Where the volume's device is on this node. @throws CsiStatusError FAILED_PRECONDITION when it is not attached */
  async function deviceOf(volumeId: string, signal: AbortSignal): Promise<string> {
    const disk = await findDisk(volumeId, signal);
    const { instanceId } = await thisInstance(signal);
    const devicePath = disk.attachments.find((a) => a.instanceId === instanceId)?.devicePath;
    if (devicePath === undefined || devicePath === "") {
      throw new CsiStatusError(
        "FAILED_PRECONDITION",
        `volume ${volumeId} is not attached to node ${nodeName}: ControllerPublishVolume comes first`,
      );
    }
    return devicePath;
  }

  async function stageMount(
    device: string,
    stagingPath: string,
    capability: VolumeCapability,
  ): Promise<void> {
    const mount = capability.accessType.case === "mount" ? capability.accessType.value : undefined;
    const readOnly = isReaderMode(capability);
    const fsType = mount?.fsType || defaultFsType;
    const present = await host.fileSystemOf(device);
    if (present === undefined) {
      if (readOnly) {
        throw new CsiStatusError("FAILED_PRECONDITION", `${device} is blank and may only be read`);
      }
      await host.format(device, fsType);
    } else if (mount !== undefined && mount.fsType !== "" && mount.fsType !== present) {
      throw new CsiStatusError(
        "FAILED_PRECONDITION",
        `the volume holds ${present}, not ${mount.fsType}: correct fsType, its data is not touched`,
      );
    }
    await host.makeDirectory(stagingPath, 0o750);
    await host.mountDevice(device, stagingPath, {
      fsType: present ?? fsType,
      flags: mount?.mountFlags ?? [],
      readOnly,
    });
  }

  /** True when `wanted` is mounted there already. @throws CsiStatusError ALREADY_EXISTS when it is something else */
  async function isThere(path: string, wanted: { readonly source: string; readonly readOnly: boolean }) {
    const top = await topMount(host, path);
    if (top === undefined) return false;
    if (top.source === wanted.source && top.readOnly === wanted.readOnly) return true;
    throw new CsiStatusError(
      "ALREADY_EXISTS",
      `${path} has ${top.source} mounted ${top.readOnly ? "read-only" : "read-write"}, which is not what is asked for`,
    );
  }

  return {
    nodeGetCapabilities: async () => ({
      capabilities: capabilities.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
    }),

    nodeGetInfo: (_request, signal) =>
      answering(async () => {
        const instance = await thisInstance(signal);
        return {
          nodeId: kind.nodeIdOf(instance),
          maxVolumesPerNode: BigInt(instance.attachLimit),
          ...(kind.topologyKey === undefined
            ? {}
            : { accessibleTopology: { segments: { [kind.topologyKey]: instance.zone } } }),
        };
      }),

    nodeStageVolume: (request, signal) =>
      alone(request.volumeId, async () => {
        required({ volume_id: request.volumeId, staging_target_path: request.stagingTargetPath });
        const capability = checkCapability(request.volumeCapability);
        const device = await deviceOf(request.volumeId, signal);
        if (capability.accessType.case === "block") return {};
        const wanted = { source: device, readOnly: isReaderMode(capability) };
        if (await isThere(request.stagingTargetPath, wanted)) return {};
        await stageMount(device, request.stagingTargetPath, capability);
        return {};
      }),

    nodeUnstageVolume: (request) =>
      alone(request.volumeId, async () => {
        required({ volume_id: request.volumeId, staging_target_path: request.stagingTargetPath });
        await unmountAll(host, request.stagingTargetPath);
        return {};
      }),

    nodePublishVolume: (request, signal) =>
      alone(request.volumeId, async () => {
        required({ volume_id: request.volumeId, target_path: request.targetPath });
        const capability = checkCapability(request.volumeCapability);
        if (request.stagingTargetPath === "") {
          throw new CsiStatusError(
            "FAILED_PRECONDITION",
            "staging_target_path is required: the driver stages volumes",
          );
        }
        const readOnly = request.readonly || isReaderMode(capability);
        if (capability.accessType.case === "block") {
          const device = await deviceOf(request.volumeId, signal);
          await publishBlock(host, device, request.targetPath, readOnly);
          return {};
        }
        const staged = await topMount(host, request.stagingTargetPath);
        if (staged === undefined) {
          throw new CsiStatusError(
            "FAILED_PRECONDITION",
            `volume ${request.volumeId} is not staged at ${request.stagingTargetPath}: NodeStageVolume comes first`,
          );
        }
        if (await isThere(request.targetPath, { source: staged.source, readOnly })) return {};
        await host.makeDirectory(request.targetPath, 0o750);
        await host.bindMount(request.stagingTargetPath, request.targetPath, { readOnly });
        return {};
      }),

    nodeUnpublishVolume: (request) =>
      alone(request.volumeId, async () => {
        required({ volume_id: request.volumeId, target_path: request.targetPath });
        await unmountAll(host, request.targetPath);
        const kindOfPath = (await host.stat(request.targetPath))?.kind;
        if (kindOfPath === "directory") await host.removeDirectory(request.targetPath);
        else if (kindOfPath !== undefined) await host.removeFile(request.targetPath);
        return {};
      }),

    nodeGetVolumeStats: (request) =>
      answering(async () => {
        required({ volume_id: request.volumeId, volume_path: request.volumePath });
        if (!(await host.isMountPoint(request.volumePath))) {
          throw new CsiStatusError("NOT_FOUND", `volume ${request.volumeId} is not at ${request.volumePath}`);
        }
        const stat = await host.stat(request.volumePath);
        if (stat?.kind !== "directory") {
          return { usage: [{ total: BigInt(stat?.sizeBytes ?? 0), unit: VolumeUsage_Unit.BYTES }] };
        }
        const { totalBytes, availableBytes } = await host.usage(request.volumePath);
        const [total, available] = [BigInt(totalBytes), BigInt(availableBytes)];
        return { usage: [{ total, available, used: total - available, unit: VolumeUsage_Unit.BYTES }] };
      }),

    nodeExpandVolume: (request, signal) =>
      alone(request.volumeId, async () => {
        required({ volume_id: request.volumeId, volume_path: request.volumePath });
        const disk = await findDisk(request.volumeId, signal);
        const mount = await topMount(host, request.volumePath);
        if (mount === undefined) {
          throw new CsiStatusError("NOT_FOUND", `volume ${request.volumeId} is not at ${request.volumePath}`);
        }
        const isBlock = (await host.stat(request.volumePath))?.kind !== "directory";
        if (!isBlock) await host.growFileSystem(mount.source, request.volumePath);
        return { capacityBytes: disk.sizeBytes };
      }),
  };
}

async function publishBlock(
  host: Host,
  device: string,
  targetPath: string,
  readOnly: boolean,
): Promise<void> {
  if (await host.isMountPoint(targetPath)) return;
  const present = await host.stat(targetPath);
  if (present === undefined) await host.writeFileAtomic(targetPath, "");
  else if (present.kind !== "file") {
    throw new CsiStatusError(
      "ALREADY_EXISTS",
      `${targetPath} is a ${present.kind}, a block volume needs a file`,
    );
  }
  await host.bindMount(device, targetPath, { readOnly });
}

/** What is mounted topmost on exactly this path. */
async function topMount(host: Host, path: string): Promise<Mount | undefined> {
  if (!(await host.isMountPoint(path))) return undefined;
  const mounts = await host.listMounts(path);
  // Targets are real paths, all at or below the one asked for: the shortest is it.
  const length = Math.min(...mounts.map(({ target }) => target.length));
  return mounts.findLast(({ target }) => target.length === length);
}

async function unmountAll(host: Host, path: string): Promise<void> {
  while (await host.isMountPoint(path)) {
    try {
      await host.unmount(path);
    } catch (error) {
      // Someone else took it away in between.
      if (!(error instanceof HostError && (error.code === "EINVAL" || error.code === "ENOENT"))) throw error;
    }
  }
}
