/**
 * What is attached where, as far as known. Rebuilt at each start from node statuses and
 * VolumeAttachments. Source: docs/behaviour/controllers.md A6.
 *
 *     absent ──attach failed──► uncertain ──attach succeeded──► confirmed
 *        ▲                         │                               │
 *        └────────── detached ─────┴───────────────────────────────┘
 *
 * Only confirmed attachments are reported in the node's status. Both kinds are detached when no pod
 * wants them.
 *
 * Invariant: what is not reported and may be attached all the same is in the node's record of uncertain
 * volumes (`uncertain-volumes.ts` of storage), as far as its plugin can migrate: then a crossing waits for it,
 * and the next controller finds it.
 */
import { uncertainVolumesText } from "@longshore/storage";
import type { UniqueVolumeName } from "../../framework/names.ts";
import type { VolumeSpec } from "../../framework/spec.ts";
import { inTreePluginOfIdentity, type VolumeIdentity } from "./volume-identity.ts";

/** One volume on one node. */
export interface Attachment {
  readonly nodeName: string;
  readonly uniqueName: UniqueVolumeName;
  readonly identity: VolumeIdentity;
  readonly pluginName: string;
  /** The plugin's own name of the volume: enough to detach it. */
  readonly volumeName: string;
  /** Undefined when recovered from a name alone: then it can only be detached. */
  spec: VolumeSpec | undefined;
  devicePath: string;
  confirmed: boolean;
  /** Found on this node by an attach to another: whether any pod here wants it is asked by identity. */
  readonly dangling: boolean;
  /** Listed in the node's `status.volumesAttached`, or about to be. */
  reported: boolean;
  /** A detach was tried and failed: it may have been done all the same, so it takes an attach to be sure. */
  detachTried: boolean;
  /** Monotonic time of the first pass that wanted it detached. */
  detachRequestedAtMs: number | undefined;
}

/** What is recorded of a new attachment. */
export type NewAttachment = Pick<
  Attachment,
  "nodeName" | "uniqueName" | "identity" | "pluginName" | "volumeName" | "spec" | "devicePath" | "confirmed"
> & { readonly dangling?: boolean };

/** All attachments, and which node statuses have to be written. */
export class ActualState {
  readonly #byKey = new Map<string, Attachment>();
  readonly #byIdentity = new Map<VolumeIdentity, Set<Attachment>>();
  readonly #byNode = new Map<string, Set<Attachment>>();
  readonly #dirtyNodes = new Set<string>();

  get size(): number {
    return this.#byKey.size;
  }

  all(): readonly Attachment[] {
    return [...this.#byKey.values()];
  }

  get(nodeName: string, uniqueName: UniqueVolumeName): Attachment | undefined {
    return this.#byKey.get(keyOf(nodeName, uniqueName));
  }

  on(nodeName: string): readonly Attachment[] {
    return [...(this.#byNode.get(nodeName) ?? [])];
  }

  ofIdentity(identity: VolumeIdentity): readonly Attachment[] {
    return [...(this.#byIdentity.get(identity) ?? [])];
  }

  /** Records an attachment, or what is newly known of it. A confirmed one does not become uncertain again. */
  put(entry: NewAttachment): Attachment {
    const present = this.get(entry.nodeName, entry.uniqueName);
    if (present === undefined) return this.#insert(entry);
    present.spec = entry.spec ?? present.spec;
    if (entry.confirmed) {
      present.devicePath = entry.devicePath;
      present.detachRequestedAtMs = undefined;
      present.detachTried = false;
      if (!present.confirmed || !present.reported) this.#dirtyNodes.add(entry.nodeName);
      present.confirmed = true;
      present.reported = true;
    }
    return present;
  }

  remove(attachment: Attachment): void {
    if (!this.#byKey.delete(keyOf(attachment.nodeName, attachment.uniqueName))) return;
    drop(this.#byIdentity, attachment.identity, attachment);
    drop(this.#byNode, attachment.nodeName, attachment);
    if (isWritten(attachment)) this.#dirtyNodes.add(attachment.nodeName);
    attachment.reported = false;
  }

  /** Puts the attachment into its node's status, or takes it out, at the next write. */
  setReported(attachment: Attachment, reported: boolean): void {
    if (attachment.reported === reported || (reported && !attachment.confirmed)) return;
    attachment.reported = reported;
    this.#dirtyNodes.add(attachment.nodeName);
  }

  /** The node's `status.volumesAttached` as it should be, sorted by name. */
  report(nodeName: string): readonly { readonly name: string; readonly devicePath: string }[] {
    return this.on(nodeName)
      .filter((attachment) => attachment.reported)
      .map(({ uniqueName, devicePath }) => ({ name: uniqueName, devicePath }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The node's record of uncertain volumes as it should be; undefined: there are none. */
  record(nodeName: string): string | undefined {
    const uncertain = this.on(nodeName).filter((attachment) => !attachment.reported && isWritten(attachment));
    return uncertainVolumesText(uncertain.map(({ uniqueName }) => uniqueName));
  }

  /** It may be attached or not: before it is reported again, it has to be attached again. */
  doubt(attachment: Attachment): void {
    this.setReported(attachment, false);
    attachment.confirmed = false;
    attachment.detachTried = false;
  }

  markDirty(nodeName: string): void {
    this.#dirtyNodes.add(nodeName);
  }

  isDirty(nodeName: string): boolean {
    return this.#dirtyNodes.has(nodeName);
  }

  /** Takes the node off the list; a failed write puts it back. */
  clearDirty(nodeName: string): void {
    this.#dirtyNodes.delete(nodeName);
  }

  dirtyNodes(): readonly string[] {
    return [...this.#dirtyNodes];
  }

  #insert(entry: NewAttachment): Attachment {
    const attachment: Attachment = {
      ...entry,
      dangling: entry.dangling ?? false,
      reported: entry.confirmed,
      detachTried: false,
      detachRequestedAtMs: undefined,
    };
    this.#byKey.set(keyOf(entry.nodeName, entry.uniqueName), attachment);
    put(this.#byIdentity, entry.identity, attachment);
    put(this.#byNode, entry.nodeName, attachment);
    if (isWritten(attachment)) this.#dirtyNodes.add(entry.nodeName);
    return attachment;
  }
}

/** Whether an object records the attachment: the node's status, or the node's record of uncertain volumes. */
function isWritten({ reported, identity }: Attachment): boolean {
  return reported || inTreePluginOfIdentity(identity) !== undefined;
}

function keyOf(nodeName: string, uniqueName: UniqueVolumeName): string {
  return `${nodeName}\n${uniqueName}`;
}

function put(index: Map<string, Set<Attachment>>, at: string, attachment: Attachment): void {
  const entries = index.get(at);
  if (entries === undefined) index.set(at, new Set([attachment]));
  else entries.add(attachment);
}

function drop(index: Map<string, Set<Attachment>>, at: string, attachment: Attachment): void {
  const entries = index.get(at);
  entries?.delete(attachment);
  if (entries?.size === 0) index.delete(at);
}
