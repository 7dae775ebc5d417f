/** NodePublishVolume and NodeUnpublishVolume: what is staged, at the path of a pod. */
import {
  CsiStatusError,
  checkAbsolutePath,
  type NodePublishVolumeRequest,
  type NodeUnpublishVolumeRequest,
  type VolumeCapability,
} from "@longshore/csi";
import type { Host } from "@longshore/runtime";
import { checkCapability, isReaderMode, isSingleWriter, mountGroupOf, useOf } from "./check-capability.ts";
import { ephemeralPlace, removeEphemeral } from "./ephemeral-volume.ts";
import { topMount, unmountAll } from "./mounted-paths.ts";
import type { NodeAttachment, NodeMachine } from "./node-machine.ts";
import {
  digestOf,
  type Publication,
  type VolumeRecord,
  withoutPublication,
  withPublication,
} from "./node-records.ts";

/** Publishes; see `NodePublishVolume` of the spec for its codes and for the table of second calls. */
export async function publishVolume(
  node: NodeMachine,
  request: NodePublishVolumeRequest,
  signal: AbortSignal,
): Promise<Record<string, never>> {
  const { volumeId } = request;
  const target = checkAbsolutePath("target_path", request.targetPath);
  const capability = checkCapability(request.volumeCapability, node.kind);
  const attachment = await node.attachment(volumeId, signal);
  if (request.stagingTargetPath === "") {
    throw new CsiStatusError(
      "FAILED_PRECONDITION",
      "staging_target_path is required: the driver stages volumes",
    );
  }
  const staging = checkAbsolutePath("staging_target_path", request.stagingTargetPath);
  const record = await node.records.of(volumeId);
  const isBlock = capability.accessType.case === "block";
  const stagedReadOnly = await checkStaged(node, record, { volumeId, staging, isBlock });
  if (stagedReadOnly.readOnly && !isReaderMode(capability) && !attachment.readOnly) {
    throw new CsiStatusError(
      "FAILED_PRECONDITION",
      `volume ${volumeId} has become read-only at ${staging}, as at an error in its file system: unstage it, so that it is checked when it is staged again`,
    );
  }
  const readOnly = request.readonly || isReaderMode(capability);
  const publication: Publication = {
    arguments: publicationDigest(capability, readOnly),
    readOnly: readOnly || attachment.readOnly,
    isAttachedReadOnly: attachment.readOnly,
    isBlock,
    isSingleWriter: isSingleWriter(capability),
  };
  await checkWriters(node.host, record, target, publication);
  const source = isBlock ? attachment.devicePath : stagedReadOnly.source;
  const shown = {
    source: node.kind.isShare ? undefined : source,
    readOnly: readOnly || (!isBlock && stagedReadOnly.readOnly),
  };
  if (await isPublished(node.host, record, { target, publication, shown })) return {};
  // Before the mount: after a crash, a record without a mount does no harm (`checkWriters`).
  await node.records.update(volumeId, (before) => withPublication(before, target, publication));
  const context = { node, volumeId, attachment, target, readOnly: publication.readOnly };
  if (isBlock) await publishBlock(context);
  else await publishMount(node.host, { staging, target, readOnly, capability });
  return {};
}

/** Unpublishes, and removes the target; fine when nothing is there. A directory with data in it stays. */
export async function unpublishVolume(
  node: NodeMachine,
  request: NodeUnpublishVolumeRequest,
): Promise<Record<string, never>> {
  const { host, records } = node;
  const target = checkAbsolutePath("target_path", request.targetPath);
  const publication = (await records.of(request.volumeId)).publications[target];
  // Read before the unmount: afterwards nothing at the target names the device.
  const source = publication?.isBlock === true ? (await topMount(host, target))?.source : undefined;
  await unmountAll(host, target);
  const kindOfPath = (await host.stat(target))?.kind;
  if (kindOfPath === "directory") await host.removeDirectory(target);
  else if (kindOfPath !== undefined) await host.removeFile(target);
  await removeData(node, request.volumeId, target);
  await records.update(request.volumeId, (record) => withoutPublication(record, target));
  if (source === undefined || publication?.isAttachedReadOnly === true) return {};
  // A device that is gone meanwhile needs nothing of this.
  if ((await host.stat(source)) !== undefined) await setWritable(node, request.volumeId, source);
  return {};
}

/** Removes an ephemeral volume that is published nowhere else. Before its record goes, which says that there is something to remove. */
async function removeData({ host, records }: NodeMachine, volumeId: string, target: string): Promise<void> {
  const { [target]: here, ...others } = (await records.of(volumeId)).publications;
  if (here?.ephemeralDir === undefined || Object.keys(others).length > 0) return;
  await removeEphemeral(host, ephemeralPlace(here.ephemeralDir, volumeId));
}

/** What is at the staging path. @throws CsiStatusError FAILED_PRECONDITION when the volume is not staged there so */
async function checkStaged(
  { host, records }: NodeMachine,
  record: VolumeRecord,
  wanted: { readonly volumeId: string; readonly staging: string; readonly isBlock: boolean },
): Promise<{ readonly source: string; readonly readOnly: boolean }> {
  const { volumeId, staging, isBlock } = wanted;
  const present = record.stagings[staging];
  const mounted = await topMount(host, staging);
  const isStaged = isBlock ? present?.isBlock === true || !records.isDurable : mounted !== undefined;
  const isOtherwise = present !== undefined && present.isBlock !== isBlock;
  if (isOtherwise || !isStaged) {
    throw new CsiStatusError(
      "FAILED_PRECONDITION",
      isOtherwise
        ? `volume ${volumeId} is staged as a ${isBlock ? "file system" : "block device"}: unstage it first`
        : `volume ${volumeId} is not staged at ${staging}: NodeStageVolume comes first`,
    );
  }
  return mounted ?? { source: "", readOnly: false };
}

/** @throws CsiStatusError FAILED_PRECONDITION when one writer alone may have the volume, here or there */
export async function checkWriters(
  host: Host,
  record: VolumeRecord,
  target: string,
  publication: Publication,
): Promise<void> {
  for (const [path, other] of Object.entries(record.publications)) {
    if (path === target || !(publication.isSingleWriter || other.isSingleWriter)) continue;
    // A record without a mount is what a crash or a restart of the machine left.
    if (!(await host.isMountPoint(path))) continue;
    throw new CsiStatusError(
      "FAILED_PRECONDITION",
      `the volume has one writer, and is published at ${path}: unpublish it there first`,
    );
  }
}

/** True when it is published there as wanted. @throws CsiStatusError ALREADY_EXISTS when it is otherwise */
export async function isPublished(
  host: Host,
  record: VolumeRecord,
  wanted: {
    readonly target: string;
    readonly publication: Publication;
    /** What a mount there is listed as; hosts list directories of shares differently. */
    readonly shown: { readonly source: string | undefined; readonly readOnly: boolean };
  },
): Promise<boolean> {
  const { target, publication, shown } = wanted;
  const top = await topMount(host, target);
  if (top === undefined) return false;
  const present = record.publications[target];
  const isOther = present !== undefined && present.arguments !== publication.arguments;
  // The source name of a bound device depends on the host, so for block volumes the record decides.
  const isForeign = publication.isBlock
    ? present === undefined && top.readOnly !== shown.readOnly
    : top.source !== (shown.source ?? top.source) || top.readOnly !== shown.readOnly;
  if (!isOther && !isForeign) return true;
  throw new CsiStatusError(
    "ALREADY_EXISTS",
    isForeign
      ? `${target} has ${top.source} mounted ${top.readOnly ? "read-only" : "read-write"}, which is not what is asked for`
      : `the volume is published at ${target} with other arguments: unpublish it first`,
  );
}

/** What makes two publications of a volume at one path different. Contexts are not part of it: tokens in them change. */
export function publicationDigest(
  capability: VolumeCapability,
  readOnly: boolean,
  sizeBytes?: number,
): string {
  const mount = capability.accessType.case === "mount" ? capability.accessType.value : undefined;
  const flags = [...(mount?.mountFlags ?? [])].sort();
  const size = sizeBytes === undefined ? [] : [sizeBytes];
  return digestOf([useOf(capability), flags, mount?.volumeMountGroup ?? "", readOnly, ...size]);
}

/** Binds what is mounted at `staging` to the target. */
export async function publishMount(
  host: Host,
  wanted: {
    readonly staging: string;
    readonly target: string;
    readonly readOnly: boolean;
    readonly capability: VolumeCapability;
  },
): Promise<void> {
  const { staging, target, readOnly, capability } = wanted;
  const gid = mountGroupOf(capability);
  // Before anyone sees it at the target; a volume that may only be read keeps what it has.
  if (gid !== undefined && !readOnly) await host.chownTree(staging, gid);
  await host.makeDirectory(target);
  await host.bindMount(staging, target, { readOnly });
}

async function publishBlock(context: {
  readonly node: NodeMachine;
  readonly volumeId: string;
  readonly attachment: NodeAttachment;
  readonly target: string;
  readonly readOnly: boolean;
}): Promise<void> {
  const { node, volumeId, attachment, target, readOnly } = context;
  const { host } = node;
  const present = await host.stat(target);
  if (present === undefined) await host.writeFileAtomic(target, "");
  else if (present.kind !== "file") {
    throw new CsiStatusError("ALREADY_EXISTS", `${target} is a ${present.kind}, a block volume needs a file`);
  }
  // Before the mount, so that a target for readers is never writable.
  await setWritable(node, volumeId, attachment.devicePath);
  await host.bindMount(attachment.devicePath, target, { readOnly });
}

/** A bind mount does not prevent writes to a device: the device itself is set read-only when no target is writable. */
async function setWritable({ host, records }: NodeMachine, volumeId: string, device: string): Promise<void> {
  const all = Object.values((await records.of(volumeId)).publications);
  if (all.some(({ isAttachedReadOnly }) => isAttachedReadOnly)) return;
  const isForReaders = all.length > 0 && all.every(({ readOnly }) => readOnly);
  await host.setDeviceReadOnly(device, isForReaders);
}
