/** What the parts of the attach/detach controller share. */
import type {
  CSIDriver,
  CSINode,
  EventRecorder,
  Informer,
  KubeEnv,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Priority,
  Stored,
  VolumeAttachment,
} from "@longshore/kube";
import type { MigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";
import type { ListedAttachment, VolumePlugin } from "../../framework/volume-plugin.ts";
import type { VolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import type { ActualState, Attachment } from "./actual-state.ts";
import type { DesiredState, WantedVolume } from "./desired-state.ts";
import { type FormsAttached, isWanted, type VolumeOwners } from "./detach-guards.ts";
import type { DiskOperations } from "./disk-operations.ts";
import type { MissingNodes } from "./missing-nodes.ts";
import type { PendingPods } from "./pending-pods.ts";
import { csiAttachmentName, type VolumeIdentity } from "./volume-identity.ts";

/** A node is managed only if it carries this annotation, with whatever value. */
export const managedNodeAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach";
/** A node with this annotation keeps the volumes of finished pods attached. */
export const keepTerminatedAnnotation = "volumes.kubernetes.io/keep-terminated-pod-volumes";

/** The caches. */
export interface AttachDetachCaches {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
  readonly csiNodes: Informer<CSINode>;
  readonly csiDrivers: Informer<CSIDriver>;
  readonly attachments: Informer<VolumeAttachment>;
}

/** Names of the indexes that the caches have. */
export const cacheIndexes = {
  podsByNode: "spec.nodeName",
  podsByClaim: "claim",
  volumesByIdentity: "volume identity",
  volumesByInTreeName: "in-tree volume name",
} as const;

/** Settings. */
export interface AttachDetachSettings {
  /** Do what Kubernetes 1.20 is recorded to do where ours differs. */
  readonly compat: boolean;
  /** Detach by force from nodes that do not confirm the unmount for this long, in ms; undefined: never on time alone. */
  readonly forceDetachAfterMs: number | undefined;
}

/** Shared by the parts of one controller. */
export interface AttachDetachContext {
  readonly env: KubeEnv;
  readonly settings: AttachDetachSettings;
  readonly caches: AttachDetachCaches;
  readonly plugins: VolumePluginManager;
  readonly migration: MigratedPluginManager;
  readonly desired: DesiredState;
  readonly actual: ActualState;
  readonly operations: DiskOperations;
  readonly pending: PendingPods;
  readonly events: EventRecorder;
  /**
   * In-tree plugins of which it is not known yet what they have attached, and why: empty while the provider is
   * asked for the first time.
   */
  readonly unlisted: Map<string, string>;
  /** What each provider has listed last on nodes whose Node was missing then, by the node. */
  readonly listedOnMissing: Map<VolumePlugin, Map<string, ListedAttachment[]>>;
  identityOfName(uniqueName: string): VolumeIdentity;
  ownersOf(attachment: Attachment): VolumeOwners;
  readonly missingNodes: MissingNodes;
  /** Changes of each node's CSINode since the start. */
  readonly csiNodeVersions: Map<string, number>;
  /** Decides the pod again soon; until then it counts as pending. In the background what no event asks for. */
  wakePod(key: string, priority?: Priority): void;
  /** Decides on the disk again soon. */
  wakeDisk(identity: VolumeIdentity): void;
  /** Runs work in the background until the controller stops; its end is reported by the work itself. */
  inBackground(work: (signal: AbortSignal) => Promise<void>): void;
}

/** Which forms of the attachment's disk are attached to its node: by this controller, or by a VolumeAttachment. */
export function formsAttached(
  context: Pick<AttachDetachContext, "actual" | "caches" | "identityOfName">,
  { identity, nodeName }: Pick<Attachment, "identity" | "nodeName">,
): FormsAttached {
  const { actual, caches } = context;
  return {
    identityOfName: (name) => context.identityOfName(name),
    isAttachedAs(name) {
      if (actual.get(nodeName, name) !== undefined) return true;
      const attachment = csiAttachmentName(identity, nodeName);
      const isCsi = name.startsWith(`${csiPluginName}/`);
      return isCsi && attachment !== undefined && caches.attachments.get(attachment) !== undefined;
    },
  };
}

/** The node, if it is in the cache and managed. */
export function managedNode(context: AttachDetachContext, name: string): Stored<Node> | undefined {
  const node = context.caches.nodes.get(name);
  return node?.metadata.annotations?.[managedNodeAnnotation] === undefined ? undefined : node;
}

/** Wakes the disks that are attached to the node and that no pod there wants: their detach may have waited for its pods. */
export function wakeUnwanted({ actual, desired, wakeDisk }: AttachDetachContext, nodeName: string): void {
  for (const attachment of actual.on(nodeName)) {
    // By its unique name: a disk that pods want in the other form is detached first.
    if (!isWanted(attachment, desired)) wakeDisk(attachment.identity);
  }
}

/** Wakes the disk of a volume that a pod newly wants, unless it is attached as it is wanted and nothing else is to be decided on it. */
export function wakeWanted(
  { actual, desired, operations, wakeDisk }: AttachDetachContext,
  nodeName: string,
  { uniqueName, identity }: Pick<WantedVolume, "uniqueName" | "identity">,
): void {
  const [attachment, ...others] = actual.ofIdentity(identity);
  const isAtRest =
    attachment !== undefined &&
    others.length === 0 &&
    attachment.nodeName === nodeName &&
    attachment.uniqueName === uniqueName &&
    attachment.confirmed &&
    attachment.reported &&
    !attachment.detachTried &&
    attachment.detachRequestedAtMs === undefined &&
    desired.ofDisk(identity).length === 1 &&
    operations.of(identity).length === 0;
  if (!isAtRest) wakeDisk(identity);
}
