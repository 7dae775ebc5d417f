/** In-tree volumes that a pod template describes itself, as PersistentVolumes and claims that it then refers to. Pure. */
import type { KubeObject, PersistentVolume, PersistentVolumeClaim } from "@longshore/kube";
import { type ClaimSizes, claimsForInlineVolumes } from "../../convert/claims-for-inline-volumes.ts";
import type { KubeObject as ParsedObject } from "../../convert/kube-object.ts";
import { inlineMigratableVolumes, podHolderOf } from "../../convert/pod-volumes.ts";
import type { Difference } from "../conversion-types.ts";
import { differencesOf } from "./differences.ts";
import { failureOf } from "./failure.ts";

/** An object whose pods use claims, with these claims and their volumes. */
export interface InlineConversion {
  /** Policy Retain: the disk was there before the pod and outlives it. */
  readonly volumes: readonly PersistentVolume[];
  readonly claims: readonly PersistentVolumeClaim[];
  readonly object: KubeObject;
  readonly differences: readonly Difference[];
}

/**
 * What takes the place of the in-tree volumes of a Pod, or of an object with a template of pods.
 * @param sizes of the disks: a claim states one, and a pod's volume does not
 */
export function inlineVolumes(
  object: KubeObject,
  sizes: ClaimSizes,
): InlineConversion | { readonly failure: string } {
  const parsed = object as unknown as ParsedObject;
  const holder = podHolderOf(parsed);
  if (holder === undefined) return { failure: `kind: ${object.kind ?? "it"} has no template of pods` };
  const volumes = inlineMigratableVolumes(parsed, holder);
  if (volumes.length === 0) {
    return {
      failure: `${holder.path.join(".")}.volumes: none is an in-tree volume that a CSI driver takes over`,
    };
  }
  try {
    const made = claimsForInlineVolumes(parsed, holder, volumes, sizes, undefined) as unknown as KubeObject[];
    const changed = made.at(-1) ?? object;
    const ofKind = (kind: string) => made.slice(0, -1).filter((one) => one.kind === kind);
    return {
      volumes: ofKind("PersistentVolume") as PersistentVolume[],
      claims: ofKind("PersistentVolumeClaim") as PersistentVolumeClaim[],
      object: changed,
      differences: differencesOf(object, changed, {}),
    };
  } catch (error) {
    return { failure: failureOf(error) };
  }
}
