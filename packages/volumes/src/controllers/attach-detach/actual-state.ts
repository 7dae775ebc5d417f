/**
 * What is attached where, as far as known. Rebuilt at each start from node statuses and
 * VolumeAttachments. Source: docs/behaviour/controllers.md A6.
 *
 *     absent ──attach failed──► uncertain ──attach succeeded──► confirmed
 *        ▲                         │                               │
 *        └────────── detached ─────┴───────────────────────────────┘
 *
 * Only confirmed attachments are reported in the node's status. Both kinds are detached when no pod
 * wants them. The passes over its disk change an attachment, one at a time; what a
 * provider or a VolumeAttachment says of it on the side changes it only while no operation of the disk is under way.
 *
 * Invariant: what is not reported and may be attached nevertheless is in the node's record of uncertain
 * volumes (`uncertain-volumes.ts` of storage): then a crossing waits for it, and the next controller finds it. Only a
 * driver's own volumes need no record: they have VolumeAttachments.
 */
import { MultiMap } from "@longshore/runtime";
import { uncertainVolumesText } from "@longshore/storage";
import type { UniqueVolumeName } from "../../framework/unique-volume-name.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import type { CountedVolumes } from "../../metrics/counted-volumes.ts";
import { volumePluginLabelOfName } from "../../metrics/volume-plugin-label.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import { inTreePluginOfIdentity, isProvisional, type VolumeIdentity } from "./volume-identity.ts";

/** One volume on one node. */
export interface Attachment {
  readonly nodeName: string;
  readonly uniqueName: UniqueVolumeName;
  /** As the name alone says it, until a pod brings the volume. */
  identity: VolumeIdentity;
  readonly pluginName: string;
  /** The plugin's own name of the volume: enough to detach it. */
  readonly volumeName: string;
  /** Undefined when recovered from a name alone: then it can only be detached. */
  spec: VolumeSpec | undefined;
  devicePath: string;
  confirmed: boolean;
  /** Attached here, discovered while attaching elsewhere; whether a pod wants it is checked by disk identity. */
  readonly dangling: boolean;
  /** Listed in the node's `status.volumesAttached`, or about to be. */
  reported: boolean;
  /** It was listed in the node's status, or may have been before it was known here: the node may have mounted it. */
  wasListed: boolean;
  /** False: only recorded for an attach that has not been asked of the provider yet. */
  asked: boolean;
  /** A detach was tried and failed: it may have been done nevertheless, so it takes an attach to be sure. */
  detachTried: boolean;
  /** Monotonic time of the first decision that wanted it detached. */
  detachRequestedAtMs: number | undefined;
  /** Version of the node's report that the last change of this attachment made; see {@link ActualState.isWritten}. */
  changedIn: number;
}

/** What is recorded of a new attachment. */
export type NewAttachment = Pick<
  Attachment,
  "nodeName" | "uniqueName" | "identity" | "pluginName" | "volumeName" | "spec" | "devicePath" | "confirmed"
> & { readonly dangling?: boolean; readonly asked?: boolean; readonly wasListed?: boolean };

/** A node's report as it should be, and its version. */
export interface NodeReport {
  /** To be handed to {@link ActualState.written} once the report is on the Node. */
  readonly version: number;
  /** `status.volumesAttached`, sorted by name. */
  readonly listed: readonly { readonly name: string; readonly devicePath: string }[];
  /** The record of uncertain volumes; undefined: there are none. */
  readonly record: string | undefined;
}

/** Versions of the report of one node. */
interface Versions {
  current: number;
  written: number;
}

/** All attachments, and which node statuses have to be written. */
export class ActualState {
  readonly #byNode = new Map<string, Map<UniqueVolumeName, Attachment>>();
  readonly #byIdentity = new MultiMap<VolumeIdentity, Attachment>();
  readonly #provisional = new Set<Attachment>();
  readonly #versions = new Map<string, Versions>();
  readonly #onDirty: (nodeName: string) => void;
  readonly #counted: CountedVolumes | undefined;

  /**
   * @param onDirty called when the report of a node has changed
   * @param counted is given what comes and goes
   */
  constructor(onDirty: (nodeName: string) => void = () => {}, counted?: CountedVolumes) {
    this.#onDirty = onDirty;
    this.#counted = counted;
  }

  get size(): number {
    let size = 0;
    for (const attachments of this.#byNode.values()) size += attachments.size;
    return size;
  }

  all(): readonly Attachment[] {
    return [...this.#byNode.values()].flatMap((attachments) => [...attachments.values()]);
  }

  get(nodeName: string, uniqueName: UniqueVolumeName): Attachment | undefined {
    return this.#byNode.get(nodeName)?.get(uniqueName);
  }

  on(nodeName: string): readonly Attachment[] {
    return [...(this.#byNode.get(nodeName)?.values() ?? [])];
  }

  ofIdentity(identity: VolumeIdentity): readonly Attachment[] {
    return this.#byIdentity.get(identity);
  }

  /** Those known by their VolumeAttachments alone: of which disk each is, is not known. */
  get provisional(): ReadonlySet<Attachment> {
    return this.#provisional;
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
      const isNews = !present.confirmed || !present.reported;
      present.confirmed = true;
      present.reported = true;
      present.wasListed = true;
      if (isNews) this.#change(present);
    }
    present.asked ||= entry.asked ?? true;
    return present;
  }

  remove(attachment: Attachment): void {
    const { nodeName, uniqueName, identity } = attachment;
    const onNode = this.#byNode.get(nodeName);
    if (onNode?.delete(uniqueName) !== true) return;
    if (onNode.size === 0) this.#byNode.delete(nodeName);
    this.#counted?.drop("actual_state_of_world", attachment);
    this.#byIdentity.delete(identity, attachment);
    this.#provisional.delete(attachment);
    if (isRecorded(attachment)) this.#change(attachment);
    // Last: whether an object records the attachment depends on `reported`.
    attachment.reported = false;
  }

  /** It is this disk, under the name that it has. */
  identify(attachment: Attachment, identity: VolumeIdentity): void {
    const wasRecorded = isRecorded(attachment);
    this.#byIdentity.delete(attachment.identity, attachment);
    attachment.identity = identity;
    this.#byIdentity.add(identity, attachment);
    if (isRecorded(attachment) !== wasRecorded) this.#change(attachment);
  }

  /** Puts the attachment into its node's status, or takes it out, at the next write. */
  setReported(attachment: Attachment, reported: boolean): void {
    if (attachment.reported === reported || (reported && !attachment.confirmed)) return;
    attachment.reported = reported;
    this.#change(attachment);
  }

  /** What the node's status and record should say. */
  report(nodeName: string): NodeReport {
    const attachments = this.on(nodeName);
    const listed = attachments
      .filter((attachment) => attachment.reported)
      .map(({ uniqueName, devicePath }) => ({ name: uniqueName, devicePath }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const uncertain = attachments.filter((attachment) => !attachment.reported && isRecorded(attachment));
    const record = uncertainVolumesText(uncertain.map(({ uniqueName }) => uniqueName));
    return { version: this.#versions.get(nodeName)?.current ?? 0, listed, record };
  }

  /** It may be attached or not: before it is reported again, it has to be attached again. */
  doubt(attachment: Attachment): void {
    this.setReported(attachment, false);
    attachment.confirmed = false;
    attachment.detachTried = false;
  }

  /** Whether the report of the node has changed since it was written. */
  isDirty(nodeName: string): boolean {
    const versions = this.#versions.get(nodeName);
    return versions !== undefined && versions.written < versions.current;
  }

  /** Whether the node's status and record say what they should of this attachment: the write has succeeded. */
  isWritten(attachment: Attachment): boolean {
    return attachment.changedIn <= (this.#versions.get(attachment.nodeName)?.written ?? 0);
  }

  /** The node's report of that version is on the Node, or there is no such Node. */
  written(nodeName: string, version: number): void {
    const versions = this.#versions.get(nodeName);
    if (versions === undefined) return;
    versions.written = Math.max(versions.written, version);
    // Not while the node has attachments: `isWritten` compares their changes with these versions.
    if (versions.written >= versions.current && !this.#byNode.has(nodeName)) this.#versions.delete(nodeName);
  }

  #change(attachment: Attachment): void {
    const { nodeName } = attachment;
    let versions = this.#versions.get(nodeName);
    if (versions === undefined) {
      versions = { current: 0, written: 0 };
      this.#versions.set(nodeName, versions);
    }
    versions.current++;
    attachment.changedIn = versions.current;
    this.#onDirty(nodeName);
  }

  #insert(entry: NewAttachment): Attachment {
    const attachment: Attachment = {
      ...entry,
      dangling: entry.dangling ?? false,
      asked: entry.asked ?? true,
      reported: entry.confirmed,
      wasListed: entry.wasListed ?? entry.confirmed,
      detachTried: false,
      detachRequestedAtMs: undefined,
      changedIn: 0,
    };
    const { nodeName, uniqueName } = entry;
    const onNode = this.#byNode.get(nodeName);
    if (onNode === undefined) this.#byNode.set(nodeName, new Map([[uniqueName, attachment]]));
    else onNode.set(uniqueName, attachment);
    this.#counted?.put("actual_state_of_world", attachment, volumePluginLabelOfName(uniqueName));
    this.#byIdentity.add(entry.identity, attachment);
    if (isProvisional(entry.identity)) this.#provisional.add(attachment);
    if (isRecorded(attachment)) this.#change(attachment);
    return attachment;
  }
}

/** Whether an object records the attachment: the node's status, or the node's record of uncertain volumes. */
function isRecorded({ reported, pluginName, identity }: Attachment): boolean {
  return reported || pluginName !== csiPluginName || inTreePluginOfIdentity(identity) !== undefined;
}
