/** What the provisioner remembers of claims between passes. It only saves work: a restart leads to the same end state. */
import type { PersistentVolumeClaim, Stored } from "@longshore/kube";
import type { Contention } from "../node-deployment.ts";
import type { SeenTopology } from "../requests/request-context.ts";
import type { MadeVolume } from "../requests/volume-answer.ts";
import type { PreparedVolume } from "../requests/volume-request.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** What this process remembers of the volume of one claim. */
export interface Attempt {
  readonly claim: Claim;
  /** The request, to be repeated as it is while its outcome is uncertain. */
  readonly prepared: PreparedVolume;
  readonly lastAnswer: "uncertain" | "final";
  /** The volume that the driver has made, while its object could not be stored yet. */
  readonly made?: MadeVolume;
  /** A request that stores the object got no answer: it may have been stored, kept and given up since. */
  readonly isStoringUncertain?: true;
}

/** The memory of one provisioner. */
export class ClaimMemory {
  readonly #attempts = new Map<string, Attempt>();
  /** By claim uid. */
  readonly topologies = new Map<string, SeenTopology>();
  /** By claim uid: claims that this process waits to take. */
  readonly contentions = new Map<string, Contention>();

  /** The attempt for the claim of this key. */
  attempt(key: string): Attempt | undefined {
    return this.#attempts.get(key);
  }

  /** CreateVolume is about to be called, or has been called, and is not accounted for yet. */
  begin(key: string, attempt: Omit<Attempt, "lastAnswer">): Attempt {
    const begun: Attempt = { ...attempt, lastAnswer: "uncertain" };
    this.#attempts.set(key, begun);
    return begun;
  }

  /**
   * Whatever CreateVolume did is accounted for: stored, deleted, or certainly not there. After this, a claim that
   * vanishes needs no search for its volume; the search would create the volume again.
   */
  settle(key: string, claim: Claim, prepared: PreparedVolume): Attempt {
    const settledAttempt: Attempt = { claim, prepared, lastAnswer: "final" };
    this.#attempts.set(key, settledAttempt);
    this.topologies.delete(claim.metadata.uid);
    return settledAttempt;
  }

  /** Another provisioner serves the claim from now on. */
  leave(key: string, uid: string): void {
    this.#attempts.delete(key);
    this.contentions.delete(uid);
  }

  /** Nothing is left to be done for the claim. */
  forget(key: string, uid: string): void {
    this.#attempts.delete(key);
    this.forgetClaim(uid);
  }

  /** The claim of this uid is gone; its attempt stays until a pass has accounted for it. */
  forgetClaim(uid: string): void {
    this.topologies.delete(uid);
    this.contentions.delete(uid);
  }
}
