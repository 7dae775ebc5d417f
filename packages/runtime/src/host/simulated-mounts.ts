/** The mount table of a simulated host, and how paths are resolved through mounts and links. */
import { posix } from "node:path";
import { HostError } from "./host.ts";
import { childOf } from "./host-paths.ts";
import type { DirectoryNode, SimulatedFileSystem, TreeNode } from "./simulated-file-system.ts";

/** One mount; the root mount has no parent. */
export interface SimulatedMount {
  readonly parent: SimulatedMount | undefined;
  /** The node of the parent mount that it covers. */
  readonly mountPoint: TreeNode | undefined;
  readonly fileSystem: SimulatedFileSystem;
  /** What is seen at the mount point. */
  readonly root: TreeNode;
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
  /** Ends the count of who uses the disk. */
  readonly release: () => void;
}

/** A place that exists: a node seen through a mount. */
export interface Place {
  readonly mount: SimulatedMount;
  readonly node: TreeNode;
  /** Its path without links. */
  readonly path: string;
}

/** A name in a directory that exists, whether or not there is something under it. */
export interface Slot {
  readonly mount: SimulatedMount;
  readonly directory: DirectoryNode;
  readonly name: string;
  readonly path: string;
  readonly node: TreeNode | undefined;
}

const linksMax = 40;

/** The mounts of one host, in mount order. */
export class SimulatedMounts {
  readonly #list: SimulatedMount[];
  /** What is covered; a node that is not is never looked for in the list. */
  readonly #covered = new Map<TreeNode, number>();
  #version = 0;

  constructor(root: SimulatedMount) {
    this.#list = [root];
  }

  /** All mounts in mount order. */
  get list(): readonly SimulatedMount[] {
    return this.#list;
  }

  /** Goes up with each change of the list. */
  get version(): number {
    return this.#version;
  }

  add(mount: SimulatedMount): void {
    this.#version++;
    this.#list.push(mount);
    if (mount.mountPoint !== undefined) this.#count(mount.mountPoint, 1);
  }

  remove(mount: SimulatedMount): void {
    this.#version++;
    this.#list.splice(this.#list.indexOf(mount), 1);
    if (mount.mountPoint !== undefined) this.#count(mount.mountPoint, -1);
    mount.release();
  }

  #count(node: TreeNode, by: 1 | -1): void {
    const count = (this.#covered.get(node) ?? 0) + by;
    if (count === 0) this.#covered.delete(node);
    else this.#covered.set(node, count);
  }

  /** The topmost mount on `node` as seen through `mount`. */
  on(mount: SimulatedMount, node: TreeNode): SimulatedMount | undefined {
    if (!this.#covered.has(node)) return undefined;
    return this.#list.findLast((m) => m.parent === mount && m.mountPoint === node);
  }

  /** What is at `path`; undefined when nothing is, or something on the way is no directory. */
  find(operation: string, path: string, followLast: boolean, links = 0): Place | undefined {
    let at = this.#cross(this.#root());
    const names = path.split("/").filter((name) => name !== "");
    for (const [index, name] of names.entries()) {
      if (at.node.kind !== "directory") return undefined;
      const node: TreeNode | undefined = at.node.entries.get(name);
      if (node === undefined) return undefined;
      if (node.kind === "symlink" && (followLast || index < names.length - 1)) {
        if (links >= linksMax) throw new HostError(operation, path, "ELOOP");
        // No link is left in at.path, so `..` may be resolved in the text.
        const target = posix.resolve(at.path, node.target, ...names.slice(index + 1));
        return this.find(operation, target, followLast, links + 1);
      }
      at = this.#cross({ mount: at.mount, node, path: childOf(at.path, name) });
    }
    return at;
  }

  /** The name `path` in its directory. @throws HostError with ENOENT or ENOTDIR when there is no such directory */
  slot(operation: string, path: string): Slot {
    if (path === "/") throw new HostError(operation, path, "EBUSY");
    const directory = this.find(operation, posix.dirname(path), true);
    if (directory === undefined) throw new HostError(operation, path, "ENOENT");
    if (directory.node.kind !== "directory") throw new HostError(operation, path, "ENOTDIR");
    const name = posix.basename(path);
    return {
      mount: directory.mount,
      directory: directory.node,
      name,
      path: childOf(directory.path, name),
      node: directory.node.entries.get(name),
    };
  }

  #root(): Place {
    const mount = this.#list[0] as SimulatedMount;
    return { mount, node: mount.root, path: "/" };
  }

  #cross(place: Place): Place {
    let at = place;
    for (;;) {
      const covering = this.on(at.mount, at.node);
      if (covering === undefined) return at;
      at = { mount: covering, node: covering.root, path: at.path };
    }
  }
}
