/** A CSI driver for tests: stages and publishes on the host that it is given, and records its calls. */
import {
  type CsiServices,
  CsiStatusError,
  type GrpcCode,
  NodeServiceCapability_RPC_Type,
  type VolumeCapability,
  type VolumeCapability_AccessMode_Mode,
  VolumeUsage_Unit,
} from "@longshore/csi";
import type { Host } from "@longshore/runtime";

/** What a test may do to the driver. */
export interface TestDriver {
  readonly services: CsiServices;
  /** Calls in order, e.g. `NodeStageVolume vol-1`. */
  readonly calls: string[];
  /** The last NodePublishVolume's volume context and secrets. */
  lastPublish:
    | {
        context: Record<string, string>;
        publishContext: Record<string, string>;
        secrets: Record<string, string>;
        readonly: boolean;
      }
    | undefined;
  /** The last NodePublishVolume's staging path. */
  lastStagingPath: string | undefined;
  /** The last NodeExpandVolume. */
  lastExpand:
    | { readonly volumePath: string; readonly stagingPath: string; readonly isBlock: boolean }
    | undefined;
  /** What the last NodeStageVolume and NodePublishVolume said of the mount. */
  readonly lastMount: Record<string, { readonly group: string; readonly flags: readonly string[] }>;
  /** The access mode that each call last said. */
  readonly lastAccessMode: Record<string, VolumeCapability_AccessMode_Mode | undefined>;
  /** What NodeGetInfo says of the volumes that the node can have. */
  maxVolumes: bigint;
  /** Where the last NodeGetVolumeStats was to look. */
  lastStats: { readonly volumePath: string; readonly stagingPath: string } | undefined;
  /** What NodeGetVolumeStats says of a volume's condition. */
  condition: { abnormal: boolean; message: string } | undefined;
  /** Device of a volume that comes without a publish context. */
  device: string;
  /** Runs before the call does anything; may throw or wait. */
  before: (rpc: string, volumeId: string) => Promise<void> | void;
  /** Runs after the call did its work, before it answers. */
  after: (rpc: string, volumeId: string) => Promise<void> | void;
}

/** What the driver is like. */
export interface TestDriverOptions {
  readonly nodeID?: string;
  /** False: it has no STAGE_UNSTAGE_VOLUME. */
  readonly staging?: boolean;
  readonly zone?: string;
  /** Capabilities besides STAGE_UNSTAGE_VOLUME. */
  readonly rpcs?: readonly NodeServiceCapability_RPC_Type[];
}

/** Makes a driver. */
export function testDriver(host: Host, options: TestDriverOptions = {}): TestDriver {
  const driver: TestDriver = {
    services: { identity: {} },
    calls: [],
    lastPublish: undefined,
    lastStagingPath: undefined,
    lastExpand: undefined,
    lastStats: undefined,
    lastMount: {},
    lastAccessMode: {},
    maxVolumes: 25n,
    condition: undefined,
    device: "",
    before: () => {},
    after: () => {},
  };
  const call = async (rpc: string, volumeId: string, work: () => Promise<void>) => {
    driver.calls.push(`${rpc} ${volumeId}`);
    await driver.before(rpc, volumeId);
    await work();
    await driver.after(rpc, volumeId);
    return {};
  };
  const stages = options.staging === false ? [] : [NodeServiceCapability_RPC_Type.STAGE_UNSTAGE_VOLUME];
  const rpcs = [...stages, ...(options.rpcs ?? [])];
  Object.assign(driver, {
    services: {
      identity: {},
      node: {
        nodeGetInfo: async () => {
          driver.calls.push("NodeGetInfo");
          await driver.before("NodeGetInfo", "");
          return {
            nodeId: options.nodeID ?? "i-1",
            maxVolumesPerNode: driver.maxVolumes,
            accessibleTopology: {
              segments: { "topology.ebs.csi.aws.com/zone": options.zone ?? "us-east-1a" },
            },
          };
        },
        nodeGetCapabilities: async () => {
          await driver.before("NodeGetCapabilities", "");
          return { capabilities: rpcs.map((type) => ({ type: { case: "rpc" as const, value: { type } } })) };
        },
        nodeStageVolume: (r) =>
          call("NodeStageVolume", r.volumeId, async () => {
            driver.lastAccessMode.NodeStageVolume = accessModeOf(r.volumeCapability);
            if (isBlock(r)) return;
            driver.lastMount.NodeStageVolume = mountOf(r.volumeCapability);
            const device = r.publishContext.devicePath ?? driver.device;
            if ((await host.fileSystemOf(device)) === undefined) await host.format(device, "ext4");
            if (await host.isMountPoint(r.stagingTargetPath)) return;
            await host.mountDevice(device, r.stagingTargetPath, { fsType: "ext4" });
          }),
        nodePublishVolume: (r) =>
          call("NodePublishVolume", r.volumeId, async () => {
            driver.lastAccessMode.NodePublishVolume = accessModeOf(r.volumeCapability);
            driver.lastStagingPath = r.stagingTargetPath;
            driver.lastMount.NodePublishVolume = mountOf(r.volumeCapability);
            driver.lastPublish = {
              context: { ...r.volumeContext },
              publishContext: { ...r.publishContext },
              secrets: { ...r.secrets },
              readonly: r.readonly,
            };
            if (await host.isMountPoint(r.targetPath)) return;
            if (isBlock(r)) {
              await host.writeFileAtomic(r.targetPath, "");
              await host.bindMount(r.publishContext.devicePath ?? driver.device, r.targetPath);
              return;
            }
            await host.makeDirectory(r.targetPath);
            if (r.stagingTargetPath !== "")
              await host.bindMount(r.stagingTargetPath, r.targetPath, { readOnly: r.readonly });
          }),
        nodeUnpublishVolume: (r) =>
          call("NodeUnpublishVolume", r.volumeId, async () => {
            if (await host.isMountPoint(r.targetPath)) await host.unmount(r.targetPath);
            if ((await host.stat(r.targetPath))?.kind === "file") await host.removeFile(r.targetPath);
            else await host.removeDirectory(r.targetPath);
          }),
        nodeGetVolumeStats: async (r) => {
          await call("NodeGetVolumeStats", r.volumeId, async () => {});
          driver.lastStats = { volumePath: r.volumePath, stagingPath: r.stagingTargetPath };
          const device = await host.stat(r.volumePath);
          if (device?.kind === "blockDevice") {
            const total = BigInt(device.sizeBytes);
            return { usage: [{ unit: VolumeUsage_Unit.BYTES, total, available: 0n, used: 0n }] };
          }
          const { totalBytes: total, availableBytes: available } = await host.usage(r.volumePath);
          const bytes = {
            total: BigInt(total),
            available: BigInt(available),
            used: BigInt(total - available),
          };
          return {
            usage: [
              { unit: VolumeUsage_Unit.INODES, total: 10n, available: 9n, used: 1n },
              { unit: VolumeUsage_Unit.BYTES, ...bytes },
            ],
            ...(driver.condition !== undefined && { volumeCondition: driver.condition }),
          };
        },
        nodeExpandVolume: (r) =>
          call("NodeExpandVolume", r.volumeId, async () => {
            driver.lastAccessMode.NodeExpandVolume = accessModeOf(r.volumeCapability);
            const { volumePath, stagingTargetPath: stagingPath } = r;
            driver.lastExpand = { volumePath, stagingPath, isBlock: isBlock(r) };
            if (isBlock(r)) return;
            const mount = (await host.listMounts(r.volumePath)).find(({ target }) => target === r.volumePath);
            const staged = (await host.listMounts("/")).find(({ target }) => target === mount?.source);
            await host.growFileSystem(staged?.source ?? mount?.source ?? "", r.volumePath);
          }),
        nodeUnstageVolume: (r) =>
          call("NodeUnstageVolume", r.volumeId, async () => {
            if (await host.isMountPoint(r.stagingTargetPath)) await host.unmount(r.stagingTargetPath);
          }),
      },
    } satisfies CsiServices,
  });
  return driver;
}

const isBlock = ({ volumeCapability }: { readonly volumeCapability?: VolumeCapability | undefined }) =>
  volumeCapability?.accessType.case === "block";

const accessModeOf = (capability: VolumeCapability | undefined) => capability?.accessMode?.mode;

function mountOf(capability: VolumeCapability | undefined) {
  const type = capability?.accessType;
  const mount = type?.case === "mount" ? type.value : undefined;
  return { group: mount?.volumeMountGroup ?? "", flags: [...(mount?.mountFlags ?? [])] };
}

/** Fails the named call once with the code. */
export function failOnce(
  driver: TestDriver,
  rpc: string,
  code: GrpcCode,
  when: "before" | "after" = "before",
): void {
  let failed = false;
  driver[when] = (called) => {
    if (called !== rpc || failed) return;
    failed = true;
    throw new CsiStatusError(code, "as the test wants");
  };
}
