/** Who holds a disk, since when, and why it is not released. Pure. Source: docs/behaviour/controllers.md A. */
import type { Stored, VolumeAttachment } from "@longshore/kube";
import { csiUniqueVolumeName, uncertainVolumesOf } from "@longshore/storage";
import { migrationGates } from "@longshore/translation";
import type { Inventory } from "../assess/inventory.ts";

/** One reason why a disk is where it is. */
export interface DiskHolder {
  readonly nodeName: string;
  /** `VolumeAttachment NAME`, or the field or annotation of the Node. */
  readonly by: string;
  /** RFC 3339; left out where the API does not say: a Node's status has no times. */
  readonly since?: string;
  readonly attached: boolean;
  /** Why it is not released; empty when nothing that was read keeps it. */
  readonly because: readonly string[];
}

/** Finds the holders of volumes. */
export interface HolderIndex {
  /** @param pv its PersistentVolume @param uniqueNames as in a node's status @param uses pods that use it */
  of(
    pv: string,
    uniqueNames: readonly string[],
    uses: readonly { readonly nodeName: string; readonly pod: string }[],
  ): readonly DiskHolder[];
  /** What holds a disk that no look-up so far was for. */
  strays(): readonly StrayDisk[];
}

/** A disk that is held, and that no volume in the API is. */
export interface StrayDisk {
  /** As the node or the VolumeAttachment names it. */
  readonly disk: string;
  readonly holder: DiskHolder;
}

interface NodeClaim {
  readonly nodeName: string;
  readonly field: "status.volumesAttached" | "status.volumesInUse" | "perhaps attached";
}

/** Makes the index; each look-up then costs as much as it finds. */
export function holderIndex({ nodes, attachments }: Inventory): HolderIndex {
  const byVolume = new Map<string, Stored<VolumeAttachment>[]>();
  for (const va of attachments) for (const key of keysOf(va)) listIn(byVolume, key).push(va);
  const claims = claimsOf(nodes);
  const found = new Set<string>();
  return {
    of(pv, uniqueNames, uses) {
      for (const name of uniqueNames) found.add(name);
      const claimed = uniqueNames.flatMap((name) => claims.get(name) ?? []);
      const held = (nodeName: string) => [
        ...uses.filter((use) => use.nodeName === nodeName).map(({ pod }) => `Pod ${pod} uses it`),
        ...(claimed.some((c) => c.nodeName === nodeName && c.field === "status.volumesInUse")
          ? ["the node's agent reports it in use"]
          : []),
      ];
      const attached = [pvKey(pv), ...uniqueNames].flatMap((key) => byVolume.get(key) ?? []);
      for (const { metadata } of attached) found.add(attachmentName(metadata.name));
      const joined = attached.map((va) => attachmentHolder(va, held(va.spec.nodeName)));
      const others = claimed.filter(
        ({ nodeName, field }) =>
          field !== "status.volumesInUse" && !joined.some((holder) => holder.nodeName === nodeName),
      );
      return [...joined, ...others.map((claim) => nodeHolder(claim, held(claim.nodeName)))];
    },
    strays() {
      const attached = attachments
        .filter(({ metadata }) => !found.has(attachmentName(metadata.name)))
        .map((va) => ({ disk: diskOf(va), holder: attachmentHolder(va, []) }));
      const claimed = [...claims]
        .filter(([name]) => !found.has(name) && isKnownKind(name))
        .flatMap(([disk, all]) =>
          all
            .filter(({ field }) => field !== "status.volumesInUse")
            .map((claim) => ({ disk, holder: nodeHolder(claim, []) })),
        );
      return [...attached, ...claimed];
    },
  };
}

const pvKey = (name: string) => `PersistentVolume ${name}`;
const attachmentName = (name: string) => `VolumeAttachment ${name}`;

/** Under which names an attachment is found: that of its PersistentVolume, or that of the disk where a pod's own volume is attached. */
function keysOf({ spec }: VolumeAttachment): readonly string[] {
  const { persistentVolumeName, inlineVolumeSpec } = spec.source;
  if (persistentVolumeName != null) return [pvKey(persistentVolumeName)];
  const csi = inlineVolumeSpec?.csi;
  return csi == null ? [] : [csiUniqueVolumeName(csi.driver, csi.volumeHandle)];
}

function diskOf(va: VolumeAttachment): string {
  return keysOf(va)[0] ?? `of ${va.spec.attacher}`;
}

/** Names of volumes that all forms of a volume would have been looked for under: a disk of another plugin is no stray. */
function isKnownKind(uniqueName: string): boolean {
  return (
    uniqueName.startsWith("kubernetes.io/csi/") ||
    migrationGates.some(({ inTreeName }) => uniqueName.startsWith(`${inTreeName}/`))
  );
}

function claimsOf(nodes: Inventory["nodes"]): ReadonlyMap<string, readonly NodeClaim[]> {
  const claims = new Map<string, NodeClaim[]>();
  for (const node of nodes) {
    const nodeName = node.metadata.name;
    const note = (name: string, field: NodeClaim["field"]) => listIn(claims, name).push({ nodeName, field });
    for (const { name } of node.status?.volumesAttached ?? []) note(name, "status.volumesAttached");
    for (const name of node.status?.volumesInUse ?? []) note(name, "status.volumesInUse");
    for (const name of uncertainVolumesOf(node)) note(name, "perhaps attached");
  }
  return claims;
}

function attachmentHolder({ metadata, spec, status }: Stored<VolumeAttachment>, held: string[]): DiskHolder {
  const { creationTimestamp: since, deletionTimestamp, finalizers = [] } = metadata;
  const error = (deletionTimestamp === undefined ? status?.attachError : status?.detachError)?.message;
  // An attacher that tries and fails reports the error; one that does not run reports nothing.
  const silent =
    error === undefined && finalizers.length > 0
      ? `, and no error was reported: see whether the attacher of ${spec.attacher} runs`
      : "";
  const deleting =
    deletionTimestamp === undefined
      ? []
      : [
          `it is being deleted since ${deletionTimestamp}, held by ${finalizers.join(", ") || "no finalizer"}${silent}`,
        ];
  return {
    nodeName: spec.nodeName,
    by: `VolumeAttachment ${metadata.name}`,
    ...(since === undefined ? {} : { since }),
    attached: status?.attached === true,
    because: [...held, ...deleting, ...(error === undefined ? [] : [error])],
  };
}

function nodeHolder({ nodeName, field }: NodeClaim, held: string[]): DiskHolder {
  const isSure = field === "status.volumesAttached";
  const unsure = isSure ? [] : ["the attach/detach controller is to confirm whether it is attached"];
  return { nodeName, by: `Node ${nodeName}, ${field}`, attached: isSure, because: [...held, ...unsure] };
}

function listIn<V>(lists: Map<string, V[]>, key: string): V[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
