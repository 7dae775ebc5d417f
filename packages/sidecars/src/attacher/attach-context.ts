/** What the controllers of the attacher work with. */
import type { CSINode, EventRecorder, Informer, PersistentVolume, VolumeAttachment } from "@longshore/kube";
import type { Driver, SidecarEnv } from "../common/sidecar-env.ts";
import type { AttachRules } from "./attach-rules.ts";
import type { VolumeReleases } from "./volume-releases.ts";

/** The caches of the attacher. */
export interface AttachCaches {
  readonly attachments: Informer<VolumeAttachment>;
  readonly volumes: Informer<PersistentVolume>;
  readonly csiNodes: Informer<CSINode>;
}

/** Seams, caches and memory of the attacher. */
export interface AttachContext {
  readonly env: SidecarEnv;
  readonly driver: Driver;
  readonly events: Pick<EventRecorder, "event">;
  readonly attachments: Pick<Informer<VolumeAttachment>, "get" | "list" | "byIndex">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly csiNodes: Pick<Informer<CSINode>, "get">;
  readonly rules: AttachRules;
  /** The deprecated annotation of a node without a CSINode; left out: as the reference, nothing is asked. */
  readonly announcedNodeId?: (nodeName: string, signal: AbortSignal) => Promise<string | undefined>;
  /** Names of attachments that the driver's own list contradicts; cleared when put right. */
  readonly forced: Set<string>;
  /** Volumes whose finalizer is being removed. */
  readonly releases: VolumeReleases;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
}
