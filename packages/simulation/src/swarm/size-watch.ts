/** Sizes only grow: those of disks, of volumes and of claims. */
import { parseQuantity, resources } from "@longshore/kube";
import type { InProcessCluster } from "@longshore/local";

/** Looks at one world again and again. */
export class SizeWatch {
  readonly #sizes = new Map<string, bigint>();
  readonly #onBreak: (what: string) => void;

  /** @param onBreak called with what has shrunk */
  constructor(onBreak: (what: string) => void) {
    this.#onBreak = onBreak;
  }

  /** The world as it is now. */
  check(cluster: Pick<InProcessCluster, "cloud" | "objects">): void {
    for (const { id, sizeBytes } of cluster.cloud.disks()) this.#see(`disk ${id}`, sizeBytes);
    for (const { metadata, spec } of cluster.objects(resources.persistentVolumes)) {
      this.#see(`volume ${metadata.uid}`, bytesOf(spec?.capacity?.storage));
    }
    for (const { metadata, status } of cluster.objects(resources.persistentVolumeClaims)) {
      this.#see(`claim ${metadata.uid}`, bytesOf(status?.capacity?.storage));
    }
  }

  /** The objects are older than the world: only disks are as they were. */
  restored(): void {
    for (const what of this.#sizes.keys()) if (!what.startsWith("disk ")) this.#sizes.delete(what);
  }

  #see(what: string, bytes: bigint): void {
    const before = this.#sizes.get(what) ?? 0n;
    if (bytes < before) this.#onBreak(`${what} has shrunk from ${before} to ${bytes} bytes`);
    this.#sizes.set(what, bytes);
  }
}

/** Nothing: 0. @throws QuantityError */
export function bytesOf(quantity: string | undefined): bigint {
  return quantity === undefined ? 0n : parseQuantity(quantity).toBytes();
}
