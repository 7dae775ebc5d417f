/** What the resizer writes: the status of claims, volumes, and events on claims. */
import {
  type EventRecorder,
  involvedObject,
  type KubeClient,
  type PersistentVolume,
  type PersistentVolumeClaim,
  refOf,
  resources,
  type Stored,
} from "@longshore/kube";
import { preResizeCapacityAnnotation } from "@longshore/storage";
import type { ClaimPatch } from "./claim-patch.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** What to write to a volume. */
export interface VolumeChange {
  readonly capacity?: string;
  /** The note of the size before; null: it goes. */
  readonly oldSize?: string | null;
}

/** Patches the status of a claim. */
export function patchClaimStatus(
  kube: KubeClient,
  claim: Claim,
  body: ClaimPatch,
  signal: AbortSignal,
): Promise<Claim> {
  const options = { signal, subresource: "status" } as const;
  return kube.patch(resources.persistentVolumeClaims, refOf(claim), { type: "merge", body }, options);
}

/** Patches the capacity of a volume, and the note of its size before. */
export async function patchVolumeSize(
  kube: KubeClient,
  volume: Stored<PersistentVolume>,
  { capacity, oldSize }: VolumeChange,
  signal: AbortSignal,
): Promise<void> {
  const annotations = { [preResizeCapacityAnnotation]: oldSize };
  const body = {
    // With it the patch fails on another volume of the same name.
    metadata: { uid: volume.metadata.uid, ...(oldSize === undefined ? {} : { annotations }) },
    ...(capacity === undefined ? {} : { spec: { capacity: { storage: capacity } } }),
  };
  await kube.patch(resources.persistentVolumes, refOf(volume), { type: "merge", body }, { signal });
}

/** An event on a claim. */
export interface ClaimEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

/** Emits an event on a claim. */
export function emitOnClaim(
  events: Pick<EventRecorder, "event">,
  claim: Claim,
  { type, reason, message }: ClaimEvent,
): void {
  events.event(involvedObject(resources.persistentVolumeClaims, claim), type, reason, message);
}
