/**
 * A pod's own in-tree volume as a PersistentVolume and a claim, bound to each other, that the pod then uses.
 */

import { createHash } from "node:crypto";
import {
  checkInlineVolume,
  explain,
  type PersistentVolume,
  TranslationError,
  type Volume,
} from "@longshore/translation";
import { type NoteSink, stepText } from "./conversion-note.ts";
import { type KubeObject, member, nameOf, textAt, withMember } from "./kube-object.ts";
import type { PodHolder } from "./pod-volumes.ts";

/** The sizes of the disks that pods use directly, as quantities such as `10Gi`. */
export interface ClaimSizes {
  /** For every volume that is not named; absent: there is none. */
  readonly others?: string | undefined;
  /** By the name of the volume in its pod. */
  readonly byVolume: ReadonlyMap<string, string>;
}

/** No size is known. */
export const noClaimSizes: ClaimSizes = { byVolume: new Map() };

const OBJECT_NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const NAME_LENGTH_MAX = 253;

/**
 * The volumes and claims followed by `object` using them.
 * @throws TranslationError when several pods would share one claim, a volume cannot be translated or its size is not
 *   known
 */
export function claimsForInlineVolumes(
  object: KubeObject,
  holder: PodHolder,
  volumes: readonly (readonly [index: number, volume: Volume])[],
  sizes: ClaimSizes,
  note: NoteSink | undefined,
): readonly KubeObject[] {
  if (holder.sharedBy !== undefined) {
    throw new TranslationError(
      nameOf(object),
      [...holder.path, "volumes"].join("."),
      `${holder.sharedBy} would share one claim`,
      "make claims by hand, or use `inline: report`",
    );
  }
  const namespace = textAt(object, "metadata", "namespace");
  const owner =
    textAt(object, "metadata", "name") ||
    textAt(object, "metadata", "generateName").replace(/-$/, "") ||
    "pod";
  const changed = [...(member(object, ...holder.path, "volumes") as readonly unknown[])];
  const made: KubeObject[] = [];
  for (const [index, volume] of volumes) {
    const place = `${holder.path.join(".")}.volumes[${index}]`;
    checkVolume(object, place, volume);
    const size = sizeOf(object, place, volume, sizes);
    const { output, steps } = explain.translateInTreeInlineVolumeToCSI(volume, namespace || "default");
    const claimName = objectName(`${owner}-${volume.name ?? index}`, `${owner}/${volume.name ?? index}`);
    const [pv, claim] = boundPair(output, claimName, namespace, size);
    made.push(pv, claim);
    changed[index] = { name: volume.name, persistentVolumeClaim: claimSource(claimName, output) };
    if (note === undefined) continue;
    for (const step of steps) {
      const from = step.from === "" ? "" : `${place}.${step.from}`;
      note({
        kind: "explain",
        object: nameOf(object),
        text: `${nameOf(pv)}: ${stepText({ ...step, from })}`,
      });
    }
    const text = `${place} -> persistentVolumeClaim.claimName = ${JSON.stringify(claimName)} (bound to ${nameOf(pv)})`;
    note({ kind: "explain", object: nameOf(object), text });
  }
  return [...made, withMember(object, [...holder.path, "volumes"], changed)];
}

function checkVolume(object: KubeObject, place: string, volume: Volume): void {
  try {
    checkInlineVolume(volume);
  } catch (error) {
    if (!(error instanceof TranslationError)) throw error;
    throw new TranslationError(nameOf(object), `${place}.${error.field}`, error.problem, error.remedy);
  }
}

/** A pod does not say how large its disk is, and a size that is made up would be taken for the truth. */
function sizeOf(object: KubeObject, place: string, volume: Volume, sizes: ClaimSizes): string {
  const size = sizes.byVolume.get(volume.name ?? "") ?? sizes.others;
  if (size !== undefined) return size;
  const problem = `a claim states a size, and a pod does not say how large the disk of ${JSON.stringify(volume.name ?? "")} is`;
  throw new TranslationError(
    nameOf(object),
    place,
    problem,
    "give the size of the disk, or use `inline: report`",
  );
}

function claimSource(claimName: string, pv: PersistentVolume): KubeObject {
  return pv.spec?.csi?.readOnly || pv.spec?.accessModes?.[0] === "ReadOnlyMany"
    ? { claimName, readOnly: true }
    : { claimName };
}

function boundPair(
  translated: PersistentVolume,
  claimName: string,
  namespace: string,
  size: string,
): readonly [KubeObject, KubeObject] {
  const volumeName = objectName(translated.metadata?.name ?? "", translated.spec?.csi?.volumeHandle ?? "");
  const metadata = namespace === "" ? { name: claimName } : { name: claimName, namespace };
  const { accessModes, csi, volumeMode } = translated.spec ?? {};
  const pv = {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: volumeName },
    spec: {
      capacity: { storage: size },
      accessModes,
      volumeMode,
      // The disk was there before the pod and outlives it.
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: "",
      claimRef: {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        namespace: namespace || "default",
        name: claimName,
      },
      csi,
    },
  };
  const claim = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata,
    spec: {
      accessModes,
      volumeMode,
      // Empty, not absent: admission would set the default class, which does not match the volume's.
      storageClassName: "",
      volumeName,
      resources: { requests: { storage: size } },
    },
  };
  return [pv, claim];
}

/** `wanted` where the API takes it for a name, else its usable part with a hash of `identity`. */
function objectName(wanted: string, identity: string): string {
  if (wanted.length <= NAME_LENGTH_MAX && OBJECT_NAME.test(wanted)) return wanted;
  const hash = createHash("sha256").update(`${wanted}\n${identity}`).digest("hex").slice(0, 16);
  const usable = wanted
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 60)
    .replace(/-+$/, "");
  return usable === "" ? `volume-${hash}` : `${usable}-${hash}`;
}
