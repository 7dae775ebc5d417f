/**
 * Claims and PersistentVolumes that were deleted while pods use them (docs/contract.md C3): the claim stays until these pods are gone
 * (`kubernetes.io/pvc-protection`), its volume until the claim is (`kubernetes.io/pv-protection`), and the disk with them. With the policy Retain
 * the disk stays for ever.
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod, Stored } from "@longshore/kube";

/** A claim that is deleted now, while it is in use. */
export interface DeletedClaim {
  readonly claim: Stored<PersistentVolumeClaim>;
  readonly volume: Stored<PersistentVolume>;
  readonly disk: string;
  /** UIDs of the pods that use it, each on a node. */
  readonly users: ReadonlySet<string>;
  /** The names by which its pods report what they write. */
  readonly writers: readonly string[];
  /** Its volume has the policy Retain. */
  readonly isRetained: boolean;
}

/** What is looked at. */
export interface ClaimsView {
  readonly claims: readonly Stored<PersistentVolumeClaim>[];
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly pods: readonly Stored<Pod>[];
  readonly disks: ReadonlySet<string>;
}

/** Looks at one world again and again. */
export class ClaimWatch {
  readonly #deleted = new Set<DeletedClaim>();
  /** Those whose disks outlive them. */
  readonly #retained = new Set<string>();
  readonly #onGone: (claim: DeletedClaim) => void;
  readonly #onBreak: (what: string) => void;

  /**
   * @param onGone called when a deleted claim is gone
   * @param onBreak called with what went too early
   */
  constructor(onGone: (claim: DeletedClaim) => void, onBreak: (what: string) => void) {
    this.#onGone = onGone;
    this.#onBreak = onBreak;
  }

  /** There is nothing to look at. */
  get isIdle(): boolean {
    return this.#deleted.size + this.#retained.size === 0;
  }

  /** It is about to be deleted. */
  deletes(claim: DeletedClaim): void {
    this.#deleted.add(claim);
    if (claim.isRetained) this.#retained.add(claim.disk);
  }

  /** An administrator deletes the disk. */
  mayGo(disk: string): void {
    this.#retained.delete(disk);
  }

  /** The world as it is now. */
  check(view: ClaimsView): void {
    for (const disk of this.#retained) {
      if (!view.disks.has(disk)) this.#onBreak(`${disk} was deleted, whose volume had the policy Retain`);
    }
    for (const each of this.#deleted) this.#checkOne(each, view);
  }

  #checkOne(each: DeletedClaim, { claims, volumes, pods, disks }: ClaimsView): void {
    const { name, uid } = each.claim.metadata;
    const claim = claims.find(({ metadata }) => metadata.uid === uid);
    const user = pods.find(({ metadata }) => each.users.has(metadata.uid))?.metadata.name;
    if (claim === undefined) {
      if (user !== undefined) this.#onBreak(`claim ${name} went while pod ${user} used it`);
      this.#deleted.delete(each);
      this.#onGone(each);
      return;
    }
    const { metadata } = each.volume;
    if (!volumes.some((volume) => volume.metadata.uid === metadata.uid))
      this.#onBreak(`volume ${metadata.name} went before its claim ${name}`);
    else if (claim.status?.phase === "Lost")
      this.#onBreak(`claim ${name} is Lost, and volume ${metadata.name} is there`);
    if (!disks.has(each.disk)) this.#onBreak(`${each.disk} was deleted before claim ${name} was gone`);
  }
}
