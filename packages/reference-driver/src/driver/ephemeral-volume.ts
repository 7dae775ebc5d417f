/**
 * Ephemeral volumes: NodePublishVolume makes one on the node for one pod, NodeUnpublishVolume removes it with its data. Its files are in
 * a directory of its own: an image with a file system, and where that is mounted.
 *
 * Invariant: each step may be made again after a crash, at the making and at the removing. An image with a file system is never formatted.
 * Source: docs/behaviour/csi-plugin.md 3, 9.3.
 */
import { CsiStatusError, type VolumeCapability } from "@longshore/csi";
import type { Host } from "@longshore/runtime";
import { checkCapability, fsTypeOf } from "./check-capability.ts";
import { topMount, unmountAll } from "./mounted-paths.ts";
import type { NodeMachine } from "./node-machine.ts";
import { digestOf } from "./node-records.ts";
import { mountStaged } from "./node-stage.ts";

type Texts = Readonly<Record<string, string>>;

const mebibyte = 1024 ** 2;
const bytesMax = 1024 * mebibyte;
const bytesDefault = 64 * mebibyte;
/** Of file systems that need more than a mebibyte. Source: mkfs.xfs(8), mkfs.btrfs(8). */
const bytesMinOf: Readonly<Record<string, number>> = { xfs: 300 * mebibyte, btrfs: 128 * mebibyte };
const units: Readonly<Record<string, number>> = { "": 1, Ki: 1024, Mi: mebibyte, Gi: 1024 * mebibyte };

/** Keys with this prefix are the CO's. */
const ofCo = "csi.storage.k8s.io/";

/** Whether the CO says that the volume is the pod's own. */
export function isEphemeral(volumeContext: Texts): boolean {
  return volumeContext[`${ofCo}ephemeral`] === "true";
}

/** Where a volume is. */
export interface EphemeralPlace {
  readonly directory: string;
  /** Its file system is mounted here, and bound from here to the pod. */
  readonly mountPath: string;
  readonly image: string;
}

/** @param root the directory of all ephemeral volumes of the driver on the node */
export function ephemeralPlace(root: string, volumeId: string): EphemeralPlace {
  // No id may lead elsewhere, or be too long for a name.
  const directory = `${root}/${digestOf(volumeId)}`;
  return { directory, mountPath: `${directory}/mount`, image: `${directory}/image` };
}

/**
 * The size in bytes, out of the attribute `size`: bytes, or a number of Ki, Mi or Gi; 64Mi where none is given, 1Gi at most.
 * @throws CsiStatusError INVALID_ARGUMENT, also for an attribute that is not known
 */
export function ephemeralSize(volumeContext: Texts, capability: VolumeCapability): number {
  const unknown = Object.keys(volumeContext).find((key) => key !== "size" && !key.startsWith(ofCo));
  if (unknown !== undefined) {
    throw new CsiStatusError(
      "INVALID_ARGUMENT",
      `volume_context ${unknown}: there is no such attribute of an ephemeral volume, only size`,
    );
  }
  const least = bytesMinOf[fsTypeOf(capability) ?? ""] ?? mebibyte;
  const { size } = volumeContext;
  if (size === undefined) return Math.max(bytesDefault, least);
  const [, digits = "", unit = ""] = /^(\d{1,10})(|Ki|Mi|Gi)$/.exec(size) ?? [];
  const bytes = digits === "" ? Number.NaN : Number(digits) * (units[unit] ?? Number.NaN);
  if (bytes >= least && bytes <= bytesMax) return bytes;
  throw new CsiStatusError(
    "INVALID_ARGUMENT",
    `volume_context size: an ephemeral volume of this file system has ${least / mebibyte}Mi to ${bytesMax / mebibyte}Mi`,
  );
}

/** @throws CsiStatusError INVALID_ARGUMENT for what is no mounted volume of one node */
export function checkEphemeralCapability(capability: VolumeCapability | undefined): VolumeCapability {
  const checked = checkCapability(capability, { sharedModes: [], isShare: false });
  if (checked.accessType.case === "mount") return checked;
  throw new CsiStatusError("INVALID_ARGUMENT", "an ephemeral volume is no block device: ask for a mount");
}

/** Makes what is missing of the volume, and mounts it at its own place. */
export async function makeEphemeral(
  node: NodeMachine,
  { directory, mountPath, image }: EphemeralPlace,
  wanted: { readonly sizeBytes: number; readonly capability: VolumeCapability },
): Promise<void> {
  const { host } = node;
  if ((await topMount(host, mountPath)) !== undefined) return;
  await host.makeDirectory(directory);
  await host.allocateFile(image, wanted.sizeBytes);
  const devicePath = await host.attachLoop(image);
  const disk = { devicePath, readOnly: false, mayBeSmaller: false, fsType: "ext4" };
  await mountStaged(node, disk, mountPath, wanted.capability, false);
}

/** Removes the volume with its data; fine when it is not there, or only parts of it are. It is bound nowhere any more. */
export async function removeEphemeral(
  host: Host,
  { directory, mountPath, image }: EphemeralPlace,
): Promise<void> {
  if ((await host.stat(directory)) === undefined) return;
  await unmountAll(host, mountPath);
  if ((await host.stat(image)) !== undefined) await host.detachLoop(image);
  await host.removeTree(directory);
}
