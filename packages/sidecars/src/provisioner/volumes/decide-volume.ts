/**
 * The whole decision of a pass over a PersistentVolume (docs/behaviour/sidecars.md 2.4). Pure.
 *
 *     Bound ─► finalizer on          Released, Delete ─► secret ─► live reading ─► disk ─► object ─► finalizer off
 *
 * Invariants
 *  - DeleteVolume directly follows a reading of the server that shows the volume as ours, Released, with policy Delete;
 *    no attachment names it.
 *  - The object goes only after the disk.
 */
import type { PersistentVolume, SecretReference, Stored } from "@longshore/kube";
import { diskFinalizersOf } from "@longshore/storage";
import type { Hidden } from "../claims/claim-step.ts";
import type { SecretValues } from "../requests/volume-calls.ts";
import type { VolumeGoal } from "../volume-goal.ts";
import { VolumeDeleteError, type VolumeDeletion } from "./volume-deletion.ts";

/** What is known of a volume, and how far the pass over it has come. */
export interface ObservedVolume {
  readonly pv: Stored<PersistentVolume>;
  /** The server itself showed it, after the secret was read. */
  readonly isLive: boolean;
  /** This provisioner's node reaches it. */
  readonly isHere: boolean;
  readonly goal: VolumeGoal;
  /** What the driver is to be asked; an error: why it cannot be. */
  readonly deletion: VolumeDeletion | { readonly error: unknown } | undefined;
  /** A node to which an attachment still joins it. */
  readonly attachedTo: string | undefined;
  readonly secrets: ReadSecrets | undefined;
  readonly isDiskDeleted: boolean;
  readonly isObjectDeleted: boolean;
  readonly isFinalizerRemoved: boolean;
  /** When the pass began, in milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly failure: { readonly error: unknown; readonly isReported: boolean } | undefined;
}

/** Values, and the secret from which they came. */
export interface ReadSecrets {
  readonly from: SecretReference;
  readonly values: Hidden<SecretValues>;
}

/** One step of a pass over a volume. */
export type VolumeStep =
  /** Nothing to do before something changes. */
  | { readonly step: "settle" }
  | { readonly step: "addFinalizer" }
  /** On the version that was seen. */
  | { readonly step: "removeProtection" }
  | { readonly step: "readSecret"; readonly secret: SecretReference }
  | { readonly step: "readVolume" }
  | { readonly step: "deleteDisk"; readonly deletion: VolumeDeletion; readonly secrets: Hidden<SecretValues> }
  | { readonly step: "deleteObject" }
  /** After the object's deletion was requested. */
  | { readonly step: "removeFinalizer" }
  | { readonly step: "countDeletion" }
  | { readonly step: "fail"; readonly error: unknown }
  | { readonly step: "reportFailure"; readonly error: unknown }
  | { readonly step: "retry"; readonly error: unknown };

const settle: VolumeStep = { step: "settle" };
const noSecrets: Hidden<SecretValues> = () => ({});

/** The next step. */
export function decideVolume(observed: ObservedVolume): VolumeStep {
  const { failure, isHere, goal } = observed;
  if (failure !== undefined) {
    return { step: failure.isReported ? "retry" : "reportFailure", error: failure.error };
  }
  if (observed.isDiskDeleted) return decideRest(observed);
  if (!isHere) return settle;
  if (goal === "protect") return { step: "addFinalizer" };
  if (goal === "unprotect") return { step: "removeProtection" };
  return goal === "delete" ? decideDeletion(observed) : settle;
}

function decideDeletion({ pv, deletion, secrets, isLive, attachedTo }: ObservedVolume): VolumeStep {
  if (deletion === undefined) return settle;
  const problem = "error" in deletion ? deletion.error : undefined;
  const secret = "error" in deletion ? undefined : deletion.secret;
  // The live reading may name another secret than the cache did: that one is read, and the volume once more after it.
  if (secret !== undefined && !isFrom(secrets, secret)) return { step: "readSecret", secret };
  if (!isLive) return { step: "readVolume" };
  // Not before the live reading: what the cache shows may have been corrected since.
  if (problem !== undefined || "error" in deletion) return { step: "fail", error: problem };
  if (attachedTo !== undefined) {
    const message = `persistentvolume ${pv.metadata.name} is still attached to node ${attachedTo}`;
    return { step: "fail", error: new VolumeDeleteError(message) };
  }
  return { step: "deleteDisk", deletion, secrets: secrets?.values ?? noSecrets };
}

function isFrom(secrets: ReadSecrets | undefined, { name, namespace }: SecretReference): boolean {
  return secrets?.from.name === name && secrets?.from.namespace === namespace;
}

function decideRest({ pv, isObjectDeleted, isFinalizerRemoved }: ObservedVolume): VolumeStep {
  if (!isObjectDeleted) return { step: "deleteObject" };
  const isKept = diskFinalizersOf(pv).length > 0;
  return { step: isKept && !isFinalizerRemoved ? "removeFinalizer" : "countDeletion" };
}
