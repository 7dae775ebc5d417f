/**
 * What may be on a disk after a loss of power: of everything that was not synced, any part may be there, in any
 * combination, and a write may be there in part.
 */
import { dirname } from "node:path";
import type { Operation } from "./recording.ts";

/** The files of a disk, by path. */
export type Image = ReadonlyMap<string, Buffer>;

/** What became of something that was not synced. */
export type Fate = "whole" | "lost" | "torn";

/** Decides the fate of the n-th thing that was not synced. */
export type Decide = (n: number, path: string) => Fate;

/** A file, whatever its names. */
interface Inode {
  /** What is on the disk for certain. */
  stable: Buffer;
  /** What was done to it since. */
  readonly pending: Operation[];
}

/** A change of names: path to file; undefined takes the name away. */
interface Naming {
  readonly operation: Operation;
  readonly names: readonly (readonly [string, Inode | undefined])[];
  isSynced: boolean;
}

const sectorBytes = 512;

/** A disk to which one operation after the other is done. */
export class DiskModel {
  readonly #now = new Map<string, Inode>();
  readonly #namings: Naming[] = [];

  /** Does an operation. Syncs count for what had ended when they began. */
  apply(operation: Operation): void {
    const { type } = operation;
    if (type === "create") {
      if (this.#now.has(operation.path)) return;
      this.#name(operation, [[operation.path, { stable: Buffer.alloc(0), pending: [] }]]);
    } else if (type === "remove") this.#name(operation, [[operation.path, undefined]]);
    else if (type === "rename" || type === "link") {
      const file = this.#now.get(operation.path);
      const gone = type === "rename" ? [[operation.path, undefined] as const] : [];
      this.#name(operation, [[operation.to, file], ...gone]);
    } else if (type === "write" || type === "truncate")
      this.#now.get(operation.path)?.pending.push(operation);
    else if (type === "sync") this.#sync(operation);
  }

  #name(operation: Operation, names: Naming["names"]): void {
    for (const [path, file] of names) {
      if (file === undefined) this.#now.delete(path);
      else this.#now.set(path, file);
    }
    this.#namings.push({ operation, names, isSynced: false });
  }

  #sync(sync: Operation & { readonly type: "sync" }): void {
    const file = this.#now.get(sync.path);
    if (file !== undefined) {
      const ended = file.pending.findIndex((operation) => operation.end >= sync.begin);
      const synced = file.pending.splice(0, ended < 0 ? file.pending.length : ended);
      for (const operation of synced) file.stable = changed(file.stable, operation, "whole");
      return;
    }
    for (const naming of this.#namings) {
      const isHere = naming.names.some(([path]) => dirname(path) === sync.path);
      if (isHere && naming.operation.end < sync.begin) naming.isSynced = true;
    }
  }

  /** The disk, where `decide` says what became of each thing that was not synced. @param random for torn writes, in [0, 1) */
  image(decide: Decide, random: () => number = () => 0): Image {
    let n = 0;
    const names = new Map<string, Inode>();
    for (const naming of this.#namings) {
      if (!naming.isSynced && decide(n++, naming.names[0]?.[0] ?? "") === "lost") continue;
      for (const [path, file] of naming.names) {
        if (file === undefined) names.delete(path);
        else names.set(path, file);
      }
    }
    const contents = new Map<Inode, Buffer>();
    for (const [path, file] of names) {
      if (contents.has(file)) continue;
      let bytes = file.stable;
      for (const operation of file.pending) {
        const fate = decide(n++, path);
        if (fate !== "lost") bytes = changed(bytes, operation, fate, random);
      }
      contents.set(file, bytes);
    }
    return new Map([...names].map(([path, file]) => [path, contents.get(file) ?? Buffer.alloc(0)]));
  }
}

/** The bytes after a write or a truncation; of a torn write some sectors are there, the others are as they were. */
function changed(bytes: Buffer, operation: Operation, fate: Fate, random: () => number = () => 0): Buffer {
  if (operation.type === "truncate") return sized(bytes, operation.length);
  if (operation.type !== "write") return bytes;
  const { at, bytes: written } = operation;
  const after = sized(bytes, Math.max(bytes.length, at + written.length));
  for (let from = 0; from < written.length; ) {
    const next = (Math.floor((at + from) / sectorBytes) + 1) * sectorBytes - at;
    if (fate === "whole" || random() < 0.5)
      written.copy(after, at + from, from, Math.min(next, written.length));
    from = next;
  }
  return after;
}

function sized(bytes: Buffer, length: number): Buffer {
  const copy = Buffer.alloc(length);
  bytes.copy(copy);
  return copy;
}
