/**
 * A file system of the simulation: a tree in memory with a journal, so that power can be lost.
 *
 * Invariants
 *  - Every change is recorded with its undoing until it is committed; losing power undoes from the
 *    end of the journal backwards, so what remains is always a state that once was.
 *  - A durable write commits everything before it, as the journal of ext4 does.
 */
import { HostError } from "./host.ts";

/** A directory. */
export interface DirectoryNode {
  readonly kind: "directory";
  readonly inode: string;
  mode: number;
  gid: number;
  label?: string | undefined;
  readonly entries: Map<string, TreeNode>;
  /** Goes up with each change of the entries. */
  version: number;
  /** Called once at the next change. */
  readonly watchers: Set<() => void>;
}

/** A regular file; `sizeBytes` may be larger than its data (sparse). */
export interface FileNode {
  readonly kind: "file";
  readonly inode: string;
  mode: number;
  label?: string | undefined;
  data: string;
  /** Bytes of the data in UTF-8; counted once, since appended logs grow long. */
  dataBytes: number;
  sizeBytes: number;
  /** Bytes that take room though no data is in them yet. */
  allocatedBytes: number;
  /** Goes up with each change of the data. */
  version: number;
  /** What is on the disk whose backing file this is. */
  readonly disk: DiskContents;
}

/** A disk's content: at most one file system, or what was written to the device itself. It stays with the disk, whichever host mounts it. */
export interface DiskContents {
  fileSystem: SimulatedFileSystem | undefined;
  /** Text that programs wrote to the device. */
  raw: string;
}

/** A symbolic link. */
export interface LinkNode {
  readonly kind: "symlink";
  readonly inode: string;
  readonly mode: number;
  readonly target: string;
}

/** A unix socket's name. */
export interface SocketNode {
  readonly kind: "socket";
  readonly inode: string;
  readonly mode: number;
}

/** A loop device's node. */
export interface DeviceNode {
  readonly kind: "blockDevice";
  readonly inode: string;
  readonly mode: number;
  readonly path: string;
}

/** Anything that has a name. */
export type TreeNode = DirectoryNode | FileNode | LinkNode | SocketNode | DeviceNode;

/** Changes that are kept undoable; older ones count as written back. */
const journalMax = 20_000;

/** One file system: tree, capacity, journal. */
export class SimulatedFileSystem {
  readonly id: string;
  readonly type: string;
  sizeBytes: number;
  readonly root: DirectoryNode;
  /** What a check of it finds, and mounting it does not see. */
  errors: "none" | "correctable" | "uncorrectable" = "none";
  #inodes = 0;
  #usedBytes = 0;
  #journal: (() => void)[] = [];

  /** @param id names it within the simulation; part of its inodes */
  constructor(id: string, type: string, sizeBytes: number) {
    this.id = id;
    this.type = type;
    this.sizeBytes = sizeBytes;
    this.root = this.newDirectory(0o755);
  }

  /** Bytes taken by file data. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  newDirectory(mode: number): DirectoryNode {
    const watchers = new Set<() => void>();
    const entries = new Map<string, TreeNode>();
    return { kind: "directory", inode: this.#inode(), mode, gid: 0, entries, version: 0, watchers };
  }

  newFile(mode: number): FileNode {
    const disk: DiskContents = { fileSystem: undefined, raw: "" };
    const inode = this.#inode();
    const empty = { data: "", dataBytes: 0, sizeBytes: 0, allocatedBytes: 0, version: 0 };
    return { kind: "file", inode, mode, ...empty, disk };
  }

  newLink(target: string): LinkNode {
    return { kind: "symlink", inode: this.#inode(), mode: 0o777, target };
  }

  newSocket(mode: number): SocketNode {
    return { kind: "socket", inode: this.#inode(), mode };
  }

  /** Files, directories and links. */
  get nodeCount(): number {
    return countOf(this.root);
  }

  /** Fills this file system, which is empty, with a copy of another's tree; committed. */
  copyFrom(original: SimulatedFileSystem): void {
    this.root.mode = original.root.mode;
    this.#copyEntries(original.root, this.root);
    this.commit();
  }

  #copyEntries(from: DirectoryNode, to: DirectoryNode): void {
    for (const [name, node] of from.entries) {
      let copy: TreeNode = node; // Links, sockets and device nodes never change.
      if (node.kind === "directory") {
        copy = this.newDirectory(node.mode);
        this.#copyEntries(node, copy);
      } else if (node.kind === "file") {
        copy = this.newFile(node.mode);
        this.setData(name, copy, node.data, node.sizeBytes);
      }
      to.entries.set(name, copy);
    }
  }

  /** Sets the entry `name` of `directory`, or removes it. */
  setEntry(directory: DirectoryNode, name: string, node: TreeNode | undefined): void {
    const before = directory.entries.get(name);
    const put = (value: TreeNode | undefined) => {
      if (value === undefined) directory.entries.delete(name);
      else directory.entries.set(name, value);
      changed(directory);
    };
    put(node);
    this.#record(() => put(before));
  }

  /** Replaces a file's data; `sizeBytes` beyond the data makes it sparse. @throws HostError with ENOSPC */
  setData(path: string, file: FileNode, data: string, sizeBytes?: number): void {
    const dataBytes = byteLength(data);
    this.#putData(path, file, { data, dataBytes, sizeBytes: sizeBytes ?? dataBytes });
  }

  /** Adds to the end of a file; what a sparse file lacks before it is filled with NULs. @throws HostError with ENOSPC */
  appendData(path: string, file: FileNode, added: string): void {
    const padding = "\0".repeat(file.sizeBytes - file.dataBytes);
    const dataBytes = file.sizeBytes + byteLength(added);
    this.#putData(path, file, { data: file.data + padding + added, dataBytes, sizeBytes: dataBytes });
  }

  /** Grows the file to at least this size, and allocates space for all of it. @throws HostError with ENOSPC */
  allocate(path: string, file: FileNode, sizeBytes: number): void {
    const { data, dataBytes } = file;
    this.#putData(path, file, { data, dataBytes, sizeBytes: Math.max(file.sizeBytes, sizeBytes) }, sizeBytes);
  }

  #putData(
    path: string,
    file: FileNode,
    next: Pick<FileNode, "data" | "dataBytes" | "sizeBytes">,
    allocatedBytes = Math.min(file.allocatedBytes, next.sizeBytes),
  ): void {
    const growth = Math.max(next.dataBytes, allocatedBytes) - roomOf(file);
    if (growth > 0 && this.#usedBytes + growth > this.sizeBytes) throw new HostError("write", path, "ENOSPC");
    const before = {
      data: file.data,
      dataBytes: file.dataBytes,
      sizeBytes: file.sizeBytes,
      allocatedBytes: file.allocatedBytes,
    };
    const put = (value: typeof before) => {
      this.#usedBytes += roomOf(value) - roomOf(file);
      Object.assign(file, value);
      file.version++;
    };
    put({ ...next, allocatedBytes });
    this.#record(() => put(before));
  }

  /** Changes the owning group. */
  setGroup(node: DirectoryNode, gid: number): void {
    const before = node.gid;
    node.gid = gid;
    this.#record(() => {
      node.gid = before;
    });
  }

  /** Changes permission bits. */
  setMode(node: DirectoryNode | FileNode, mode: number): void {
    const before = node.mode;
    node.mode = mode;
    this.#record(() => {
      node.mode = before;
    });
  }

  /** Changes the SELinux label. */
  setLabel(node: DirectoryNode | FileNode, label: string): void {
    const before = node.label;
    node.label = label;
    this.#record(() => {
      node.label = before;
    });
  }

  /** A file's last name is gone: its data takes no space any more. */
  release(node: TreeNode): void {
    if (node.kind === "file") this.setData("", node, "", 0);
    if (node.kind === "directory") for (const child of node.entries.values()) this.release(child);
  }

  /** Everything so far is on the disk. */
  commit(): void {
    this.#journal = [];
  }

  /** Changes that a loss of power may undo. */
  get uncommitted(): number {
    return this.#journal.length;
  }

  /** Undoes what was not committed, but for the first `kept` changes, which reached the disk by luck. */
  losePower(kept = 0): void {
    const lost = this.#journal.splice(kept);
    this.#journal = [];
    for (const undo of lost.reverse()) undo();
    this.#journal = [];
  }

  #record(undo: () => void): void {
    this.#journal.push(undo);
    if (this.#journal.length > journalMax) this.#journal.splice(0, journalMax / 2);
  }

  #inode(): string {
    return `${this.id}:${++this.#inodes}`;
  }
}

function countOf(node: TreeNode): number {
  if (node.kind !== "directory") return 1;
  let count = 1;
  for (const child of node.entries.values()) count += countOf(child);
  return count;
}

function changed(directory: DirectoryNode): void {
  directory.version++;
  const waiting = [...directory.watchers];
  directory.watchers.clear();
  for (const wake of waiting) wake();
}

const roomOf = (file: Pick<FileNode, "dataBytes" | "allocatedBytes">): number =>
  Math.max(file.dataBytes, file.allocatedBytes);

/** Bytes of `text` in UTF-8. */
function byteLength(text: string): number {
  return Buffer.byteLength(text, "utf8");
}
