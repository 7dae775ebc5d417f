/**
 * The block devices that the hosts of one simulation share: what one host attaches, all see, as
 * the nodes of a local cluster see each other's loop devices. Content belongs to the backing file.
 */
import { HostError } from "./host.ts";
import { type DeviceNode, type FileNode, SimulatedFileSystem } from "./simulated-file-system.ts";

/** A loop device. */
export interface SimulatedLoop {
  readonly path: string;
  readonly backing: FileNode;
  /** Path of the backing file on the host that attached it. */
  readonly backingPath: string;
  /** The host that attached it. */
  readonly host: string;
  /** Capacity in bytes, as of the last attach. */
  sizeBytes: number;
}

/** One mount of a disk's file system, for the question who writes to it. */
interface DiskUse {
  readonly host: string;
  readonly fileSystem: SimulatedFileSystem;
  readonly readOnly: boolean;
}

/** The devices, and a watch over who mounts them. */
export class SimulatedDisks {
  /** The directory of device nodes, mounted at `/dev` on every host. */
  readonly devices = new SimulatedFileSystem("dev", "devtmpfs", 0);
  /** What a file server holds, mounted on every host with a `sharesDir`: these see each other's files. */
  readonly shares = new SimulatedFileSystem("shares", "nfs", 2 ** 40);
  readonly #loops = new Map<string, SimulatedLoop>();
  readonly #uses = new Set<DiskUse>();
  readonly #violations: string[] = [];
  readonly #onViolation: (violation: string) => void;
  #fileSystems = 0;

  /** @param onViolation called at once with each entry of {@link violations} */
  constructor(onViolation: (violation: string) => void = () => {}) {
    this.#onViolation = onViolation;
  }

  /** Each time that a file system was mounted read-write on two hosts at once (contract C2). */
  get violations(): readonly string[] {
    return this.#violations;
  }

  /** The hosts that have the disk of this device mounted, sorted; with the same name twice for two mounts. */
  mountedOn(device: string): readonly string[] {
    const fileSystem = this.#loops.get(device)?.backing.disk.fileSystem;
    return [...this.#uses]
      .filter((use) => use.fileSystem === fileSystem)
      .map((use) => use.host)
      .sort();
  }

  /** Paths of the devices in use, sorted. */
  loops(): readonly SimulatedLoop[] {
    return [...this.#loops.values()].sort((a, b) => a.path.localeCompare(b.path));
  }

  /** Attaches the backing file to the first free device, or returns the one it has with its current size. */
  attach(host: string, backingPath: string, backing: FileNode): SimulatedLoop {
    const present = this.find(backing);
    if (present !== undefined) {
      present.sizeBytes = backing.sizeBytes;
      return present;
    }
    let index = 0;
    while (this.#loops.has(`/dev/loop${index}`)) index++;
    const path = `/dev/loop${index}`;
    const loop = { path, backing, backingPath, host, sizeBytes: backing.sizeBytes };
    this.#loops.set(path, loop);
    const node: DeviceNode = { kind: "blockDevice", inode: `dev:${index}`, mode: 0o660, path };
    this.devices.setEntry(this.devices.root, `loop${index}`, node);
    this.devices.commit();
    return loop;
  }

  /** Takes the device away. @throws HostError with EBUSY while its file system is mounted anywhere */
  detach(loop: SimulatedLoop): void {
    if (this.mountedOn(loop.path).length > 0) throw new HostError("detachLoop", loop.backingPath, "EBUSY");
    this.#remove(loop);
  }

  find(backing: FileNode): SimulatedLoop | undefined {
    return [...this.#loops.values()].find((loop) => loop.backing === backing);
  }

  findByPath(host: string, backingPath: string): SimulatedLoop | undefined {
    return [...this.#loops.values()].find((l) => l.host === host && l.backingPath === backingPath);
  }

  byDevice(path: string): SimulatedLoop | undefined {
    return this.#loops.get(path);
  }

  /** A new, empty file system for a disk of this size. */
  newFileSystem(type: string, sizeBytes: number): SimulatedFileSystem {
    return new SimulatedFileSystem(`fs${++this.#fileSystems}`, type, sizeBytes);
  }

  /** Counts a mount of a disk. Returns a function that ends it. */
  use(host: string, fileSystem: SimulatedFileSystem, readOnly: boolean, device: string): () => void {
    const use: DiskUse = { host, fileSystem, readOnly };
    const other = [...this.#uses].find(
      (u) => u.fileSystem === fileSystem && u.host !== host && !u.readOnly && !readOnly,
    );
    this.#uses.add(use);
    if (other !== undefined) {
      const disk = this.#loops.get(device)?.backingPath ?? fileSystem.id;
      const violation = `C2: disk ${disk} is mounted read-write on ${other.host} and on ${host}`;
      this.#violations.push(violation);
      this.#onViolation(violation);
    }
    return () => {
      this.#uses.delete(use);
    };
  }

  /** The host has lost power: the devices that it attached are gone. */
  losePower(host: string): void {
    for (const loop of this.loops()) if (loop.host === host) this.#remove(loop);
  }

  #remove(loop: SimulatedLoop): void {
    this.#loops.delete(loop.path);
    this.devices.setEntry(this.devices.root, loop.path.slice("/dev/".length), undefined);
    this.devices.commit();
  }
}
