/** What restores of the API server have taken from a world: no object leads to these disks any more. */
import type { InProcessCluster } from "@longshore/local";
import type { LostByRestore } from "./operations/operators.ts";

/** All restores of one world. */
export class RestoreLosses {
  /** UIDs of claims. */
  readonly #claims = new Set<string>();
  /** The disks that were in use by them. */
  readonly #disks = new Set<string>();

  add({ claims, disks, again }: LostByRestore): void {
    // An earlier restore has taken them, and this one, of a later backup, has them.
    for (const uid of again.claims) this.#claims.delete(uid);
    for (const disk of again.disks) this.#disks.delete(disk);
    for (const uid of claims) this.#claims.add(uid);
    for (const disk of disks) this.#disks.add(disk);
  }

  /** Disks that were made for no claim that a restore has taken. Some have no claim in their names. */
  othersOf({ cloud }: InProcessCluster): number {
    return cloud
      .disks()
      .filter(({ id, name }) => !this.#disks.has(id) && ![...this.#claims].some((uid) => name.includes(uid)))
      .length;
  }

  /** Those that were in use and are gone: nothing knows whose data they had, so nothing may delete them. */
  deletedOf({ cloud }: InProcessCluster): readonly string[] {
    const left = new Set(cloud.disks().map(({ id }) => id));
    return [...this.#disks].filter((disk) => !left.has(disk));
  }
}
