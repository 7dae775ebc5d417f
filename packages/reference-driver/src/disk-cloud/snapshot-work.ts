/**
 * Cutting and deleting snapshots: one backing file each, `snapshots/ID`, a copy of the disk's.
 *
 * Invariants
 *  - The record is stored before the file is made, and is the last to go: a crash leaves no file without a record.
 *  - A snapshot that is not ready was never given to anyone: what fails is taken back.
 */
import type { Clock, Host, KeyedLock, Random } from "@longshore/runtime";
import { CloudError } from "@longshore/volumes";
import type { DiskRecord, GroupRecord, SnapshotRecord } from "./cloud-state.ts";
import { diskOf, keyOf } from "./find-disk.ts";
import {
  type DiskSnapshot,
  type SnapshotBlocks,
  type SnapshotBlocksRequest,
  type SnapshotGroup,
  snapshotBlockBytes,
} from "./provider-cloud.ts";
import { type Provider, providerOf } from "./providers/index.ts";
import * as record from "./snapshot-record.ts";
import type { StateFile } from "./state-file.ts";

/** What the work needs. */
export interface SnapshotWorkOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly file: StateFile;
  /** The cloud's lock of disks and names. */
  readonly lock: KeyedLock;
  readonly stateDir: string;
  backingFile(disk: DiskRecord): string;
}

/** Blocks of one answer, however many are requested. */
const blocksMax = 10_000;

/** The snapshots of one cloud. */
export class SnapshotWork {
  readonly #options: SnapshotWorkOptions;

  constructor(options: SnapshotWorkOptions) {
    this.#options = options;
  }

  /** Where the snapshot's content is. */
  fileOf(snapshotId: string): string {
    return `${this.#options.stateDir}/snapshots/${snapshotId}`;
  }

  /** After a start: completes interrupted work, or takes it back. @returns the failures */
  async resume(): Promise<readonly unknown[]> {
    const { file } = this.#options;
    const failures: unknown[] = [];
    const going = record.snapshotsOf(file.state).filter(({ state }) => state === "deleting");
    if (going.length > 0) await this.#takeBack(going.map(({ id }) => id));
    for (const members of this.#unfinished()) {
      // The copy is made again, which also replaces the rest of a killed copy.
      await this.#finish(members).catch((error: unknown) => failures.push(error));
    }
    for (const group of record.groupsOf(file.state)) {
      // A crash between the removal of its members and its own leaves such a group.
      if (record.membersOf(file.state, group).length === 0) await this.#forget(group.id);
    }
    return failures;
  }

  async create(provider: Provider, name: string, diskId: string): Promise<DiskSnapshot> {
    const { file, lock } = this.#options;
    checkCopies(provider);
    if (name === "") throw new CloudError("InvalidArgument", "a snapshot needs a name");
    return lock.run(`snapshot ${name} of ${provider.name}`, async () => {
      const present = record.existingSnapshot(file.state, provider, name, diskId);
      if (present?.state === "ready") return record.toSnapshot(present);
      const planned = present ?? { id: this.#newId("snap", name), ...ownerOf(provider), name, diskId };
      await this.#cut(provider, [planned]);
      return record.toSnapshot(record.readySnapshot(file.state, provider, planned.id));
    });
  }

  /** Which blocks hold data, or changed. */
  async blocks(
    provider: Provider,
    { snapshotId, baseSnapshotId, from, max }: SnapshotBlocksRequest,
  ): Promise<SnapshotBlocks> {
    const { file, host } = this.#options;
    if (baseSnapshotId === undefined) record.readySnapshot(file.state, provider, snapshotId);
    else record.decideChange(file.state, provider, baseSnapshotId, snapshotId);
    const base = baseSnapshotId === undefined ? {} : { base: this.fileOf(baseSnapshotId) };
    const wanted = {
      blockBytes: snapshotBlockBytes,
      from,
      max: Math.min(Math.max(max, 1), blocksMax),
      ...base,
    };
    const { blocks, next } = await host.diskBlocks(this.fileOf(snapshotId), wanted);
    return { blocks, ...(next === undefined ? {} : { next }) };
  }

  async delete(provider: Provider, snapshotId: string): Promise<void> {
    const { file, lock } = this.#options;
    await lock.run(snapshotId, async () => {
      const snapshot = record.decideDeleteSnapshot(file.state, provider, snapshotId);
      if (snapshot !== undefined) await this.#takeBack([snapshot.id]);
    });
  }

  async createGroup(provider: Provider, name: string, diskIds: readonly string[]): Promise<SnapshotGroup> {
    const { file, lock } = this.#options;
    checkCopies(provider);
    if (name === "") throw new CloudError("InvalidArgument", "a group of snapshots needs a name");
    if (diskIds.length === 0) throw new CloudError("InvalidArgument", "a group of snapshots needs disks");
    const wanted = [...new Set(diskIds)];
    return lock.run(`group ${name} of ${provider.name}`, async () => {
      const present = record.existingGroup(file.state, provider, name, wanted);
      const done = present && record.toGroup(file.state, present);
      if (done !== undefined) return done;
      const group = present ?? {
        id: this.#newId("group", name),
        ...ownerOf(provider),
        name,
        diskIds: wanted,
      };
      const members = group.diskIds.map((diskId, index) => {
        const id = this.#newId("snap", `${index} of ${name}`);
        return { id, ...ownerOf(provider), name: `${name}-${index}`, diskId, groupId: group.id };
      });
      const open = present === undefined ? [] : record.membersOf(file.state, present);
      // Members that were planned before keep their ids.
      await this.#cut(provider, open.length > 0 ? open : members, group);
      const made = record.toGroup(file.state, group);
      if (made === undefined) throw new CloudError("Unavailable", `group ${group.id} is not made: try again`);
      return made;
    });
  }

  async deleteGroup(provider: Provider, groupId: string): Promise<void> {
    const { file, lock } = this.#options;
    await lock.run(groupId, async () => {
      const group = record.ownGroup(file.state, provider, groupId);
      if (group === undefined) return;
      await this.#takeBack(record.membersOf(file.state, group).map(({ id }) => id));
      await this.#forget(groupId);
    });
  }

  /** Snapshots that are not ready, those of one group together. */
  #unfinished(): readonly (readonly SnapshotRecord[])[] {
    const open = record.snapshotsOf(this.#options.file.state).filter(({ state }) => state === "creating");
    const sets = new Map<string, SnapshotRecord[]>();
    for (const snapshot of open) {
      const key = snapshot.groupId ?? snapshot.id;
      sets.set(key, [...(sets.get(key) ?? []), snapshot]);
    }
    return [...sets.values()];
  }

  /** Plans and copies; the disks cannot change meanwhile. The snapshots are ready on success, and gone on failure. */
  async #cut(
    provider: Provider,
    snapshots: readonly Omit<SnapshotRecord, "sizeBytes" | "state">[],
    group?: GroupRecord,
  ): Promise<void> {
    const { file } = this.#options;
    await this.#holding(snapshots.map(({ diskId }) => keyOf(provider, diskId)).sort(), async () => {
      let planned: readonly SnapshotRecord[] = [];
      await file.update((state) => {
        planned = snapshots.map((snapshot) => {
          return {
            ...snapshot,
            sizeBytes: diskOf(state, provider, snapshot.diskId).sizeBytes,
            state: "creating",
          };
        });
        const next = record.withSnapshots(state, planned);
        return group === undefined ? next : record.withGroup(next, group);
      });
      await this.#finish(planned);
    });
  }

  async #finish(planned: readonly SnapshotRecord[]): Promise<void> {
    const { file, host, clock } = this.#options;
    try {
      await host.makeDirectory(`${this.#options.stateDir}/snapshots`);
      await host.copyDisks(
        planned.map((snapshot) => {
          const disk = diskOf(file.state, providerOf(snapshot), snapshot.diskId);
          return { source: this.#options.backingFile(disk), target: this.fileOf(snapshot.id) };
        }),
      );
      const createdAt = clock.now().toISOString();
      const ready = planned.map((snapshot) => ({ ...snapshot, state: "ready" as const, createdAt }));
      await file.update((state) => record.withSnapshots(state, ready));
    } catch (error) {
      await this.#takeBack(planned.map(({ id }) => id));
      const groupId = planned[0]?.groupId;
      if (groupId !== undefined) await this.#forget(groupId);
      throw error;
    }
  }

  /** Locks in one order, so that two groups with common disks do not wait for each other. */
  #holding<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const [first, ...rest] = keys;
    if (first === undefined) return work();
    return this.#options.lock.run(first, () => this.#holding(rest, work));
  }

  async #takeBack(ids: readonly string[]): Promise<void> {
    const { file, host } = this.#options;
    await file.update((state) => {
      const going = record.snapshotsOf(state).filter(({ id }) => ids.includes(id));
      return record.withSnapshots(
        state,
        going.map((snapshot) => ({ ...snapshot, state: "deleting" as const })),
      );
    });
    for (const id of ids) await host.removeFile(this.fileOf(id));
    await file.update((state) => record.withoutSnapshots(state, ids));
  }

  async #forget(groupId: string): Promise<void> {
    await this.#options.file.update((state) => record.withoutGroup(state, groupId));
  }

  #newId(kind: "snap" | "group", name: string): string {
    const { random, file } = this.#options;
    const id = `${kind}-0${random.uuid(`id of ${kind} ${name}`).replaceAll("-", "").slice(-16)}`;
    const isTaken = file.state.snapshots?.[id] !== undefined || file.state.groups?.[id] !== undefined;
    return isTaken ? this.#newId(kind, name) : id;
  }
}

/** Records of EBS are as they were before there were other providers. */
function ownerOf({ name }: Provider): Pick<SnapshotRecord, "provider"> {
  return name === "aws-ebs" ? {} : { provider: name };
}

/** @throws CloudError InvalidArgument for shares, which are directories */
function checkCopies({ attaches, name }: Provider): void {
  if (attaches !== "share") return;
  throw new CloudError("InvalidArgument", `${name} has no snapshots here: copy the files of the share`);
}
