/** NodeStageVolume and NodeUnstageVolume: the disk's file system at the staging path; a block volume leaves none. */
import {
  CsiStatusError,
  checkAbsolutePath,
  type NodeStageVolumeRequest,
  type VolumeCapability,
} from "@longshore/csi";
import { type Host, HostError } from "@longshore/runtime";
import { checkCapability, fsTypeOf, isReaderMode, useOf } from "./check-capability.ts";
import { topMount, unmountAll } from "./mounted-paths.ts";
import type { NodeAttachment, NodeMachine } from "./node-machine.ts";
import { digestOf, withoutStaging, withStaging } from "./node-records.ts";

/** Stages; see `NodeStageVolume` of the spec for its codes. */
export async function stageVolume(
  node: NodeMachine,
  request: NodeStageVolumeRequest,
  signal: AbortSignal,
): Promise<Record<string, never>> {
  const { volumeId } = request;
  const path = checkAbsolutePath("staging_target_path", request.stagingTargetPath);
  const capability = checkCapability(request.volumeCapability, node.kind);
  const { secrets, volumeContext } = request;
  const present = (await node.records.of(volumeId)).stagings[path];
  const attachment = await node.open({ volumeId, capability, secrets, volumeContext }, signal);
  const isBlock = capability.accessType.case === "block";
  const staged = node.kind.attachesOn === "node" ? { diskId: attachment.diskId } : {};
  const staging = { arguments: stagingDigest(capability), isBlock, ...staged };
  const readOnly = isReaderMode(capability) || attachment.readOnly;
  const mounted = await topMount(node.host, path);
  const isThere = present?.isBlock === true || mounted !== undefined;
  const isOther = present !== undefined && present.arguments !== staging.arguments;
  const isForeign =
    mounted !== undefined &&
    (isBlock ||
      // Where a share is mounted, the host shows what its directory lies on.
      (!node.kind.isShare && mounted.source !== attachment.devicePath) ||
      mounted.readOnly !== readOnly);
  if (isThere && (isOther || isForeign)) {
    throw new CsiStatusError(
      "ALREADY_EXISTS",
      isForeign
        ? `${path} has ${mounted.source} mounted ${mounted.readOnly ? "read-only" : "read-write"}, which is not what is asked for`
        : `volume ${volumeId} is staged at ${path} with other arguments: unstage it first`,
    );
  }
  await node.records.update(volumeId, (record) => withStaging(record, path, staging));
  if (isThere || isBlock) return {};
  if (node.kind.isShare) await bindShare(node.host, attachment.devicePath, path, readOnly);
  else await mountStaged(node, attachment, path, capability, readOnly);
  return {};
}

async function bindShare(host: Host, share: string, path: string, readOnly: boolean): Promise<void> {
  await host.makeDirectory(path);
  await host.bindMount(share, path, { readOnly });
}

/** Unstages; fine when nothing is staged. */
export async function unstageVolume(
  node: NodeMachine,
  request: { readonly volumeId: string; readonly stagingTargetPath: string },
  signal: AbortSignal,
): Promise<Record<string, never>> {
  const path = checkAbsolutePath("staging_target_path", request.stagingTargetPath);
  await unmountAll(node.host, path);
  const { stagings } = await node.records.of(request.volumeId);
  // Before the record goes, which says what to detach.
  if (Object.keys(stagings).every((other) => other === path)) await node.close(request.volumeId, signal);
  await node.records.update(request.volumeId, (record) => withoutStaging(record, path));
  return {};
}

/** What makes two stagings of a volume different. */
function stagingDigest(capability: VolumeCapability): string {
  const { accessType } = capability;
  const flags = accessType.case === "mount" ? accessType.value.mountFlags : [];
  return digestOf([useOf(capability), [...flags].sort()]);
}

/** Mounts a device, which is formatted when it is blank. */
export async function mountStaged(
  { host, defaultFsType }: NodeMachine,
  { devicePath, mayBeSmaller, fsType: providedFsType }: NodeAttachment,
  path: string,
  capability: VolumeCapability,
  readOnly: boolean,
): Promise<void> {
  const flags = capability.accessType.case === "mount" ? capability.accessType.value.mountFlags : [];
  const asked = fsTypeOf(capability);
  const present = await host.fileSystemOf(devicePath);
  const fsType = present ?? asked ?? providedFsType ?? defaultFsType;
  if (present === undefined) {
    if (readOnly) {
      throw new CsiStatusError("FAILED_PRECONDITION", `${devicePath} is blank and may only be read`);
    }
    await host.format(devicePath, fsType);
  } else if (asked !== undefined && asked !== present) {
    throw new CsiStatusError(
      "FAILED_PRECONDITION",
      `the volume holds ${present}, not ${asked}: correct fsType, its data is not touched`,
    );
  } else if (!readOnly) {
    await host.checkFileSystem(devicePath);
  }
  await host.makeDirectory(path);
  const mount = () => host.mountDevice(devicePath, path, { fsType, flags, readOnly });
  try {
    await mount();
  } catch (error) {
    if (!(error instanceof HostError && error.code === "EINVAL" && flags.length > 0)) throw error;
    // The flags may be secret, and what mount(8) says of them, too.
    throw new CsiStatusError(
      "INVALID_ARGUMENT",
      `the ${fsType} of the volume cannot be mounted with these mount_flags: correct them`,
    );
  }
  // What was copied onto a larger disk, or could not be grown while it was mounted, has its former size.
  if (mayBeSmaller && !readOnly) await growStaged(host, devicePath, path, mount);
}

/** While it is not in use, it may also be grown unmounted, where this process may not do it otherwise. */
async function growStaged(
  host: Host,
  devicePath: string,
  path: string,
  mountAgain: () => Promise<void>,
): Promise<void> {
  try {
    await host.growFileSystem(devicePath, path);
  } catch (error) {
    if (!(error instanceof HostError && error.code === "EPERM")) throw error;
    await host.unmount(path);
    await host.growUnmounted(devicePath);
    await mountAgain();
  }
}
