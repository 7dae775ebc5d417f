/**
 * What the page shows, as it goes over the wire: a compact picture of the cluster, made for one look.
 * Lists are sorted, so that two pictures of the same cluster are equal, and cut at {@link listMax}.
 */

/** Most entries of one list in a picture. */
export const listMax = 500;

/** By which code a volume is attached. */
export type AttachPath = "in-tree" | "csi";

/** The picture. */
export interface DashboardState {
  /** False until every list has come in once. */
  readonly complete: boolean;
  /** What is not followed now: the rest of the picture is as it was then. Empty while everything is fresh. */
  readonly stale: readonly StaleSource[];
  /** The crossing that was begun last, where one is known of. */
  readonly crossing?: CrossingState;
  readonly plugins: readonly PluginState[];
  readonly nodes: readonly NodeState[];
  /** Pods that no node has been chosen for. */
  readonly pendingPods: readonly PodState[];
  readonly volumes: readonly VolumeState[];
  readonly attachments: readonly AttachmentState[];
  /** Newest first. */
  readonly events: readonly EventState[];
  /** What was counted, also where a list was cut. */
  readonly totals: {
    readonly nodes: number;
    readonly pods: number;
    readonly volumes: number;
    readonly attachments: number;
  };
}

/** A source that is not followed now. */
export interface StaleSource {
  /** `API server`, or the plural of the kind. */
  readonly source: string;
  /** Until when it was followed; RFC 3339. */
  readonly since: string;
  readonly error: string;
}

/** A crossing. Times are RFC 3339. */
export interface CrossingState {
  readonly state: "running" | "interrupted" | "finished";
  readonly direction: "migrate" | "rollback";
  readonly plugin: string;
  readonly nodesDone: number;
  /** `user@host, process 1`; empty when it is not known. */
  readonly by: string;
  readonly step?: { readonly name: string; readonly since: string };
  readonly waiting?: { readonly for: string; readonly since: string };
  readonly interruption?: { readonly why: string; readonly since: string };
  readonly finishedAt?: string;
}

/** How far an in-tree plugin has been carried over. */
export interface PluginState {
  /** e.g. `kubernetes.io/aws-ebs`. */
  readonly name: string;
  readonly nodesMigrated: number;
  readonly nodes: number;
}

/** A node. */
export interface NodeState {
  readonly name: string;
  readonly zone: string;
  readonly ready: "True" | "False" | "Unknown";
  /** Since when it has given no sign of life (RFC 3339); empty while it does. */
  readonly silentSince: string;
  readonly cordon: "none" | "crossing" | "administrator";
  readonly migratedPlugins: readonly string[];
  readonly drivers: readonly string[];
  /** From `status.volumesAttached`. */
  readonly attached: readonly NodeVolumeState[];
  /** From `status.volumesInUse`. */
  readonly inUse: readonly NodeVolumeState[];
  readonly pods: readonly PodState[];
}

/** A volume as a node's status names it. */
export interface NodeVolumeState {
  readonly uniqueName: string;
  readonly path: AttachPath;
  /** The claim where it is known, else what the volume is called there. */
  readonly label: string;
}

/** A pod. */
export interface PodState {
  /** `namespace/name`. */
  readonly name: string;
  /** Its phase, or `Terminating`. */
  readonly phase: string;
  readonly ready: boolean;
  readonly claims: readonly string[];
}

/** A PersistentVolume. */
export interface VolumeState {
  readonly name: string;
  /** `namespace/name`; empty for none. */
  readonly claim: string;
  readonly phase: string;
  /** Of the PersistentVolume (`spec.capacity`), as a quantity; empty when it says none. */
  readonly size: string;
  /** `namespace/name` of the pods that use its claim. */
  readonly pods: readonly string[];
  readonly form: "in-tree" | "csi" | "other";
  /** In-tree plugin or driver; empty for other forms. */
  readonly owner: string;
  readonly handle: string;
  /** What the driver calls a volume of in-tree form; empty when it cannot be translated or is not of that form. */
  readonly csiHandle: string;
  readonly attachedTo: readonly { readonly node: string; readonly path: AttachPath }[];
}

/** A VolumeAttachment. */
export interface AttachmentState {
  readonly name: string;
  readonly driver: string;
  readonly node: string;
  /** The PV's name; `inline` for a volume inside a pod's spec. */
  readonly volume: string;
  readonly phase: "attaching" | "attached" | "detaching" | "failed";
  readonly error: string;
}

/** An event. */
export interface EventState {
  readonly id: string;
  /** RFC 3339; empty when the event has no time. */
  readonly time: string;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  /** `Kind namespace/name`. */
  readonly object: string;
  readonly message: string;
  readonly count: number;
}
