/** The recordings of a real kube-controller-manager 1.20.2 (`tests/vectors-data/kcm-migration`). */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { PersistentVolume, PersistentVolumeClaim, VolumeAttachment } from "@longshore/kube";

export interface RecordedEvent {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly kind?: string;
}
export interface RecordedPod {
  readonly backend: "csi" | "in-tree" | "none";
  readonly events: readonly RecordedEvent[];
  readonly skipped: readonly string[];
  readonly uniqueVolumeNames: readonly string[];
  readonly volumeAttachments: readonly VolumeAttachment[];
}
export interface RecordedObject {
  readonly annotations: Readonly<Record<string, string>>;
  readonly phase: string;
  readonly finalizers?: readonly string[];
  readonly conditions?: readonly { readonly type: string; readonly status: string }[] | null;
}
export interface Level {
  readonly featureGates: Readonly<Record<string, boolean>>;
  readonly attach: Readonly<Record<string, RecordedPod>>;
  readonly attachmentsLeftAfterPodsDeleted: readonly unknown[];
  readonly volumesAttached: Readonly<
    Record<
      string,
      { attached: readonly { name: string; devicePath: string }[]; afterPodsDeleted: readonly unknown[] }
    >
  >;
  readonly claims: Readonly<
    Record<
      string,
      { pv?: RecordedObject | null; pvc: RecordedObject | null; events: readonly RecordedEvent[] }
    >
  >;
  readonly restart?: {
    readonly to: string;
    readonly changes: Readonly<
      Record<string, { before: Record<string, string>; after: Record<string, string> }>
    >;
  };
}
export interface Recording {
  readonly plugin: string;
  readonly csiDriver: string;
  readonly input: {
    readonly nodes: Readonly<Record<string, { name: string; csiNode: object | null }>>;
    readonly pods: Readonly<Record<string, { nodeName: string; volume: object }>>;
    readonly pvcs: Readonly<Record<string, PersistentVolumeClaim>>;
    readonly pvs: Readonly<Record<string, PersistentVolume>>;
  };
  readonly levels: Readonly<Record<string, Level>>;
}

/** The recording of `plugin`, from the repository's vectors. */
export function loadRecording(plugin: string): Recording {
  const file = new URL(`../../../../tests/vectors-data/kcm-migration/${plugin}.json.gz`, import.meta.url);
  return JSON.parse(gunzipSync(readFileSync(file)).toString());
}
