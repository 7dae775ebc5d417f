/**
 * Why an attachment is not detached (yet). Pure; the rules in the order in which they are asked.
 * Source: docs/behaviour/controllers.md A7; docs/contract.md, "Unknown is never detached".
 */
import type { Node } from "@longshore/kube";
import type { Attachment } from "./actual-state.ts";
import type { ClaimRef } from "./build-pod-volume.ts";
import type { DesiredState, UndecidedVolume } from "./desired-state.ts";
import { isProvisional, provisionalIdentity, type VolumeIdentity } from "./volume-identity.ts";

/** Taint of a node that is down for good: its volumes may be taken away. */
export const outOfServiceTaint = "node.kubernetes.io/out-of-service";

/** What may own a disk: the PVs and claims that have this identity. */
export interface VolumeOwners {
  /** PVs with that identity. */
  readonly pvNames: readonly string[];
  /** Claims to which those PVs belong. */
  readonly claims: readonly ClaimRef[];
  /** Driver of the disk's CSI form, if any, and its in-tree plugin. */
  readonly inTreePlugin: string | undefined;
}

/** Whether a pod on the attachment's node wants it attached. */
export function isWanted(attachment: Attachment, desired: DesiredState): boolean {
  const { nodeName, uniqueName, identity } = attachment;
  if (desired.get(nodeName, uniqueName) !== undefined) return true;
  if (attachment.dangling && desired.wantsIdentity(nodeName, identity)) return true;
  for (const undecided of desired.undecidedOn(nodeName)) if (undecided.identity === identity) return true;
  return false;
}

/**
 * Which disk it is whose volume was missing when the attachment was recovered, or is not known by its name (an RBD image of
 * which the monitors are not known): one to which a pod on the node refers, and which has that very VolumeAttachment or
 * in-tree name. Undefined: there is none, or the attachment has its identity already.
 */
export function diskReferredTo(
  { nodeName, uniqueName, identity }: Pick<Attachment, "nodeName" | "uniqueName" | "identity">,
  desired: DesiredState,
): VolumeIdentity | undefined {
  if (!isProvisional(identity)) {
    const named = desired.ofInTreeName(nodeName, uniqueName)?.identity;
    return named === identity ? undefined : named;
  }
  for (const volume of [...desired.on(nodeName), ...desired.undecidedOn(nodeName)]) {
    const disk = volume.identity;
    if (disk !== undefined && provisionalIdentity(disk, nodeName) === identity) return disk;
  }
  return undefined;
}

/** The first unknown volume of a pod on the node that the attachment could be. */
export function unknownItCouldBe(
  attachment: Attachment,
  undecided: Iterable<UndecidedVolume>,
  owners: VolumeOwners,
): UndecidedVolume | undefined {
  for (const unknown of undecided) if (couldBe(attachment, unknown, owners)) return unknown;
  return undefined;
}

function couldBe(attachment: Attachment, unknown: UndecidedVolume, owners: VolumeOwners): boolean {
  if (unknown.identity !== undefined) return unknown.identity === attachment.identity;
  if (unknown.inTreePlugin !== undefined) return unknown.inTreePlugin === owners.inTreePlugin;
  if (unknown.pvName === "") return false; // The claim was never bound: nothing of it is attached.
  // A disk that no PersistentVolume of the cache names may be the one that the pod means.
  if (owners.pvNames.length === 0) return true;
  if (unknown.pvName !== undefined) return owners.pvNames.includes(unknown.pvName);
  const { claim } = unknown;
  // A PersistentVolume without a claimRef may be the one of this claim nevertheless.
  if (claim === undefined || owners.claims.length < owners.pvNames.length) return true;
  return owners.claims.some(({ namespace, name }) => namespace === claim.namespace && name === claim.name);
}

/** Who has attached the disk to the node in which form, as far as anybody knows. */
export interface FormsAttached {
  identityOfName(uniqueName: string): VolumeIdentity;
  /** Whether anything attached the disk to that node under this unique name. */
  isAttachedAs(uniqueName: string): boolean;
}

/**
 * Whether the node says that it uses the disk in a form in which it could have mounted it. The name
 * of the other form alone says what the node waits for: it mounts only what its status lists as
 * attached under that very name, so while nothing has attached the disk in that form, nothing is mounted.
 */
export function nodeUses(
  node: Node,
  attachment: Pick<Attachment, "identity" | "pluginName" | "uniqueName">,
  forms: FormsAttached,
): boolean {
  const listed = node.status?.volumesAttached ?? [];
  const isOfDisk = (identity: VolumeIdentity) =>
    identity === attachment.identity ||
    (isProvisional(attachment.identity) &&
      provisionalIdentity(identity, node.metadata?.name ?? "") === attachment.identity);
  return (node.status?.volumesInUse ?? []).some(
    (name) =>
      // Its own name needs no identity: that of an inline disk or of a volume that has gone may not follow from it.
      name === attachment.uniqueName ||
      (isOfDisk(forms.identityOfName(name)) &&
        (name.startsWith(`${attachment.pluginName}/`) ||
          listed.some((volume) => volume.name === name) ||
          forms.isAttachedAs(name))),
  );
}

/** Whether the node's kubelet reports that it is Ready. */
export function isReady(node: Node): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

/** Whether the node is declared out of service. */
export function isOutOfService(node: Node | undefined): boolean {
  return node?.spec?.taints?.some(({ key }) => key === outOfServiceTaint) ?? false;
}
