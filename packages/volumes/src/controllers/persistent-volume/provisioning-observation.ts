/** What is known about a claim whose volume is made in-tree, and how far a pass has come. */
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass, Stored } from "@longshore/kube";
import type { ProvisionableVolumePlugin } from "../../framework/volume-plugin.ts";

/** An action that is tried several times in one pass. */
export interface Tries {
  readonly failures: number;
  readonly error: unknown;
  /** A failure left open whether the action took effect. */
  readonly isUncertain: boolean;
  /** The pause after the last failure is over. */
  readonly hasPaused: boolean;
}

/** Claim and volume are read live: what is decided on them cannot be undone. */
export interface ProvisioningObservation {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** The claim with the annotation of its provisioner; the same object when it has it. */
  readonly claimGiven: Stored<PersistentVolumeClaim>;
  /** The claim with annotation and finalizer of a provisioning that begins; the same object when it has them. */
  readonly claimWithIntent: Stored<PersistentVolumeClaim>;
  /** The finalizer of an in-tree provisioning is on the claim. */
  readonly isBegun: boolean;
  /** The stored volume of the claim. */
  readonly volume: Stored<PersistentVolume> | undefined;
  readonly storageClass: Stored<StorageClass> | undefined;
  /** The plugin that makes volumes of the class, or for a claim that is being deleted the one that has begun. */
  readonly plugin: ProvisionableVolumePlugin | undefined;
  /** The node that the claim names; undefined: none, or there is no such node. */
  readonly node: Stored<Node> | undefined;
  /** Milliseconds until what failed may be tried again; 0: now. */
  readonly waitMs: number;

  /** The plugin would make the volume, as far as it can say without its provider. */
  readonly isChecked?: boolean;
  /** What the plugin has made in this pass. */
  readonly made?: PersistentVolume;
  /** Attempts to store it that have failed. */
  readonly storing?: Tries;
  readonly isStored?: boolean;
  /** This pass has read, after `made` and after the last attempt to delete its disk, that no volume of the name is stored. */
  readonly isConfirmedAbsent?: boolean;
  /** Attempts to delete its disk that have failed. */
  readonly deleting?: Tries;
  readonly isDeleted?: boolean;
  /** The plugin could not make the volume, or may not be asked. */
  readonly failure?: { readonly error: unknown; readonly retryInMs: number };
  /** The event that is due has been emitted. */
  readonly isReported?: boolean;
}
