/** What a pass over a claim knows, and the steps it can take. */
import type { PersistentVolumeClaim, StorageClass, Stored } from "@longshore/kube";
import type { ProvisionError } from "../create-outcome.ts";
import type { Share } from "../node-deployment.ts";
import type { Places } from "../requests/select-topology.ts";
import type { MadeVolume, UnfitVolume } from "../requests/volume-answer.ts";
import type { SecretValues } from "../requests/volume-calls.ts";
import type { VolumeDraft } from "../requests/volume-draft.ts";
import type { FoundForDraft, PreparedVolume } from "../requests/volume-request.ts";
import type { ContentSource } from "../sources/content-source.ts";
import type { DataSource } from "../sources/data-source.ts";
import type { ClaimFacts } from "./claim-goal.ts";
import type { Attempt } from "./claim-memory.ts";
import type { Found } from "./leftover.ts";

/** A claim that is stored. */
export type Claim = Stored<PersistentVolumeClaim>;

/** Holds values so that nothing that writes an observation down shows them. */
export type Hidden<T> = () => T;

/** What is known of one claim, and how far the pass over it has come. */
export interface ObservedClaim {
  readonly key: string;
  /** As the cache showed it when the pass began, or the server where it was asked; undefined: there is none. */
  readonly claim: Claim | undefined;
  /** As the cache shows it now. */
  readonly cached: Claim | undefined;
  /** What this process remembered of the claim when the pass began. */
  readonly attempt: Attempt | undefined;
  /** The claim of the attempt is not in the cache any more, or has been replaced. */
  readonly isVanished: boolean;
  /** An earlier process stored the intent, so that no write will show whether the cache is stale. */
  readonly needsLiveClaim: boolean;
  /** What an earlier process stored, the cache may not show yet. */
  readonly needsLiveVolume: boolean;
  readonly share: Share;
  readonly storageClass: StorageClass | undefined;
  readonly facts: ClaimFacts;
  /** Where each node has a provisioner and the claim has none yet. */
  readonly contention: ObservedContention | undefined;
  /** False with `--compat=reference`: no intent is stored. */
  readonly storesIntent: boolean;
  /** An earlier call, of this process or of one before it, may have made the volume. */
  readonly mayExist: boolean;
  /** When the pass began, in milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly work: ClaimWork;
  readonly failure: ClaimFailure | undefined;
}

/** What is known of a claim with immediate binding that no provisioner of a node has taken. */
export interface ObservedContention {
  /** It is annotated for this driver, and its class is the driver's. */
  readonly isOurs: boolean;
  /** It wants a volume, and its class allows this node. */
  readonly isFit: boolean;
  /** Races lost for it; undefined: this process does not wait for it yet. */
  readonly races: number | undefined;
  /** Milliseconds until it may be taken. */
  readonly dueInMs: number;
  readonly hasRoom: boolean | undefined;
  /** Another provisioner wrote the claim first. */
  readonly isLost: boolean;
}

/** What the steps of this pass have brought. */
export interface ClaimWork {
  readonly draft?: VolumeDraft;
  /** What the volume is copied from, as CreateVolume takes it. */
  readonly contentSource?: ContentSource;
  readonly selected?: { readonly places: Places };
  /** The request, but for the parameters of a VolumeAttributesClass. */
  readonly composed?: PreparedVolume;
  readonly prepared?: PreparedVolume;
  /** The request cannot be made for the chosen node. */
  readonly refused?: ProvisionError;
  readonly secrets?: Hidden<SecretValues>;
  readonly isSourceProtected?: true;
  readonly isIntentStored?: true;
  readonly isBeginReported?: true;
  readonly made?: MadeVolume;
  readonly unfit?: UnfitVolume;
  /** The claim by the server's word; `gone`, for the making of a volume, also when it is deleted or bound. */
  readonly onServer?: "wanted" | "gone";
  /** `taken`: another volume has the name. */
  readonly stored?: "created" | "taken";
  readonly isSuccessReported?: true;
  readonly lookup?: Lookup;
  readonly removal?: Removal;
  readonly isAccounted?: true;
  readonly isIntentRemoved?: true;
  readonly isForgotten?: true;
  /** The snapshot that nothing is restored from any more. */
  readonly sourceToFree?: string | undefined;
}

/** The search for what an uncertain call may have left. */
export interface Lookup {
  readonly prepared?: PreparedVolume;
  readonly secrets?: Hidden<SecretValues | "gone">;
  readonly found?: Found;
}

/** The deletion of a volume that must not stay. */
export interface Removal {
  /**
   * A stored PersistentVolume stands for it, by the server's word: only its reclaim policy decides. Or one did, and was
   * given up.
   */
  readonly isStored?: boolean;
  readonly secrets?: Hidden<SecretValues>;
  readonly isDeleted?: true;
}

/** What went wrong in this pass. */
export interface ClaimFailure {
  readonly error: unknown;
  /** Something may be left at the driver. */
  readonly isCleanup?: true;
  readonly isCleanupReported?: true;
  readonly isReported?: true;
}

/** One step of a pass over a claim. */
export type ClaimStep =
  /** Nothing to do before something changes. */
  | { readonly step: "settle" }
  | { readonly step: "readClaim" }
  /** Whether the PersistentVolume of the claim exists. */
  | { readonly step: "readVolume" }
  /** The request cannot be met as it is; the message is shown to users. */
  | { readonly step: "refuse"; readonly message: string }
  | { readonly step: "fail"; readonly error: unknown }
  | { readonly step: "leaveToOthers" }
  | ProvisionStep
  | RemovalStep
  | ContentionStep
  | ReleaseStep
  | FailureStep;

/** Steps towards a stored volume. */
export type ProvisionStep =
  | { readonly step: "draftVolume" }
  | { readonly step: "resolveSource"; readonly source: DataSource }
  | { readonly step: "selectTopology"; readonly draft: VolumeDraft }
  | { readonly step: "composeRequest"; readonly draft: VolumeDraft; readonly found: FoundForDraft }
  | {
      readonly step: "readAttributesClass";
      readonly name: string;
      readonly composed: PreparedVolume;
    }
  | { readonly step: "readSecret"; readonly prepared: PreparedVolume }
  | { readonly step: "protectSource"; readonly source: DataSource }
  | { readonly step: "storeIntent" }
  | { readonly step: "reportBegin" }
  | {
      readonly step: "createVolume";
      readonly prepared: PreparedVolume;
      readonly secrets: Hidden<SecretValues>;
    }
  /** The cache lost the claim, or the volume may be stored already: the server decides whether the new volume stays. */
  | { readonly step: "confirmClaim" }
  /** What the driver made is not what was requested, and is deleted. */
  | { readonly step: "rejectVolume"; readonly error: ProvisionError }
  | { readonly step: "storeVolume"; readonly prepared: PreparedVolume; readonly made: MadeVolume }
  | { readonly step: "reportSuccess"; readonly prepared: PreparedVolume }
  /** The outcome of CreateVolume is known and accounted for. */
  | { readonly step: "account"; readonly prepared: PreparedVolume; readonly isProvisioned: boolean };

/** Steps that make sure that no volume stays behind. */
export type RemovalStep =
  | { readonly step: "confirmVanished"; readonly attempt: Attempt }
  /** Only the cache has lost the claim. */
  | { readonly step: "awaitCache" }
  | { readonly step: "prepareLookup" }
  | { readonly step: "readLookupSecret"; readonly prepared: PreparedVolume }
  | {
      readonly step: "findVolume";
      readonly prepared: PreparedVolume;
      readonly secrets: Hidden<SecretValues | "gone">;
    }
  | ({ readonly step: "readStoredVolume" } & Unwanted)
  | ({ readonly step: "readDeletionSecret" } & Unwanted)
  | ({ readonly step: "deleteVolume"; readonly secrets: Hidden<SecretValues> } & Unwanted)
  | { readonly step: "forgetAttempt"; readonly attempt: Attempt };

/** A volume at the driver that must not stay. */
export interface Unwanted {
  readonly prepared: PreparedVolume;
  readonly volumeId: string;
  /** The text is shown to users. */
  readonly why: string;
}

/** Steps towards taking a claim for this provisioner's node. */
export type ContentionStep =
  | { readonly step: "leaveContention" }
  | { readonly step: "pauseContention"; readonly races: number }
  | { readonly step: "awaitTurn"; readonly ms: number }
  | { readonly step: "askForRoom" }
  | { readonly step: "takeClaim" };

/** Steps that end the work on a claim. */
export type ReleaseStep =
  | { readonly step: "removeSelectedNode" }
  | { readonly step: "removeIntent" }
  | { readonly step: "forget" }
  | { readonly step: "freeSnapshot"; readonly snapshotKey: string };

/** Steps after a failure. */
export type FailureStep =
  | { readonly step: "reportCleanupFailure"; readonly error: unknown }
  /** Another component fills the volume. */
  | { readonly step: "reportIgnored"; readonly message: string }
  | { readonly step: "reportFailure"; readonly error: unknown; readonly isProvisioning: boolean }
  /** What can never succeed is tried again after a long time. */
  | { readonly step: "retryLate" }
  /** With the delays of the queue. */
  | { readonly step: "retry"; readonly error: unknown };
