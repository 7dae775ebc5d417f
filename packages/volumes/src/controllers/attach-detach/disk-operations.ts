/**
 * The attaches and detaches that are under way, and how long a failed one has to wait. A call to a provider runs in the
 * background and a VolumeAttachment is served by its attacher: neither keeps a worker of the controller busy.
 * Source: docs/behaviour/controllers.md A7; docs/behaviour/node-agent.md 7.1 (the rules of the back-off).
 *
 * Invariants
 *  - Of all operations of a disk that are in each other's way, at most one is under way: one per disk, or one per disk and
 *    node where the disk may be attached to several.
 *  - Success forgets; failure doubles the delay; the start of an operation of the other kind on its node
 *    resets it. One on another node does not: else a detach and an attach that both fail would try by turns, without delay.
 */
import { backoffMs } from "@longshore/runtime";
import { operationBackoff } from "../../framework/operation-backoff.ts";
import type { DesiredVolume } from "./desired-state.ts";
import type { VolumeIdentity } from "./volume-identity.ts";

/** Kinds of operations. */
export type OperationKind = "attach" | "detach";

/** What an operation works on. */
export interface OperationScope {
  readonly identity: VolumeIdentity;
  readonly nodeName: string;
  /** The disk may be attached to several nodes: operations on other nodes are not in the way. */
  readonly isShared: boolean;
}

/** What came of a call in the background. */
export type OperationOutcome =
  | { readonly kind: "done"; readonly devicePath: string }
  | { readonly kind: "failed"; readonly message: string }
  /** The plugin cannot attach at all: nothing was asked of a provider. */
  | { readonly kind: "not-asked"; readonly message: string }
  /** An attach found the disk on another node. */
  | {
      readonly kind: "dangling";
      readonly message: string;
      readonly currentNode: string;
      readonly devicePath: string;
    };

/** An operation that is under way. Immutable: progress replaces it. */
export interface DiskOperation extends OperationScope {
  readonly kind: OperationKind;
  readonly uniqueName: string;
  /** What an attach attaches, and for which pods; they may go meanwhile. */
  readonly volume: DesiredVolume | undefined;
  /** CSI does it to a volume that is written for an in-tree plugin, as far as that is known. */
  readonly isMigrated: boolean;
  /** True for an attach that is the provider's first call for this volume and node. */
  readonly isFirst: boolean;
  /** Monotonic time of its start, in milliseconds. */
  readonly startedAtMs: number;
  /** The VolumeAttachment that it waits for; undefined: a call to a provider. */
  readonly attachmentName: string | undefined;
  /** Version of the VolumeAttachment from which on the cache says something about this operation. */
  readonly sinceVersion: string | undefined;
  /** For a detach by CSI: version of the deleting VolumeAttachment at the first look, whose error is older. */
  readonly firstVersion: string | undefined;
  /** For a detach by CSI: the VolumeAttachment was seen attached after its deletion was requested. */
  readonly seenAttached: boolean;
  /** Set at the end of a call in the background. */
  readonly outcome: OperationOutcome | undefined;
}

interface Failure {
  readonly kind: OperationKind;
  readonly scope: OperationScope;
  readonly failures: number;
  readonly retryAtMs: number;
}

/** The operations of all disks. */
export class DiskOperations {
  readonly #underWay = new Map<VolumeIdentity, readonly DiskOperation[]>();
  readonly #failed = new Map<VolumeIdentity, readonly Failure[]>();
  readonly #diskOf = new Map<string, VolumeIdentity>();
  readonly #onEnd: (operation: DiskOperation, isDone: boolean) => void;

  /** @param onEnd called when an operation has ended; must not throw */
  constructor(onEnd: (operation: DiskOperation, isDone: boolean) => void = () => {}) {
    this.#onEnd = onEnd;
  }

  /** Operations of the disk that are under way. */
  of(identity: VolumeIdentity): readonly DiskOperation[] {
    return this.#underWay.get(identity) ?? [];
  }

  /** The disk whose operation waits for this VolumeAttachment. */
  diskOf(attachmentName: string): VolumeIdentity | undefined {
    return this.#diskOf.get(attachmentName);
  }

  /** Whether a pending operation conflicts with one of this scope. */
  isPending(scope: OperationScope): boolean {
    return this.of(scope.identity).some((operation) => conflictsWith(operation, scope));
  }

  /** Monotonic time before which the operation is not repeated after failures, in milliseconds; 0: at once. */
  retryAtMs(kind: OperationKind, scope: OperationScope): number {
    const failed = this.#failed.get(scope.identity) ?? [];
    return failed.find((one) => one.kind === kind && conflictsWith(one.scope, scope))?.retryAtMs ?? 0;
  }

  /** Begins an operation; a failure of the other kind on the node does not delay its next try any more. */
  begin(
    kind: OperationKind,
    scope: OperationScope,
    of: Pick<DiskOperation, "uniqueName" | "startedAtMs" | "attachmentName"> &
      Partial<Pick<DiskOperation, "volume" | "isMigrated" | "isFirst">>,
  ): DiskOperation {
    this.#keepFailures(
      scope.identity,
      (failure) => failure.kind === kind || failure.scope.nodeName !== scope.nodeName,
    );
    const operation: DiskOperation = {
      identity: scope.identity,
      nodeName: scope.nodeName,
      isShared: scope.isShared,
      kind,
      uniqueName: of.uniqueName,
      // The desired volume loses its pods while one of them is looked at again: the outcome is still theirs to hear of.
      volume: of.volume && { ...of.volume, pods: new Map(of.volume.pods) },
      isMigrated: of.isMigrated ?? false,
      isFirst: of.isFirst ?? false,
      startedAtMs: of.startedAtMs,
      attachmentName: of.attachmentName,
      sinceVersion: undefined,
      firstVersion: undefined,
      seenAttached: false,
      outcome: undefined,
    };
    this.#underWay.set(scope.identity, [...this.of(scope.identity), operation]);
    if (of.attachmentName !== undefined) this.#diskOf.set(of.attachmentName, scope.identity);
    return operation;
  }

  /** Notes progress. An operation that has ended meanwhile stays so. @returns whether it is still under way */
  progress(
    operation: DiskOperation,
    news: Partial<Pick<DiskOperation, "sinceVersion" | "firstVersion" | "seenAttached" | "outcome">>,
  ): boolean {
    const operations = this.of(operation.identity);
    const at = operations.findIndex((one) => isSame(one, operation));
    if (at < 0) return false;
    // The argument is a value from an earlier look: what was noted since must not be lost.
    const present = operations[at] as DiskOperation;
    this.#underWay.set(operation.identity, operations.with(at, { ...present, ...news }));
    return true;
  }

  /** The operation has succeeded. */
  succeed(operation: DiskOperation): void {
    this.#end(operation, true);
    this.#keepFailures(operation.identity, (failure) => !conflictsWith(failure.scope, operation));
  }

  /** The operation has failed. @returns milliseconds until it may be repeated */
  fail(operation: DiskOperation, nowMs: number): number {
    this.#end(operation, false);
    return this.refuse(operation.kind, operation, nowMs);
  }

  /** The operation was not begun for a reason that may pass. @returns milliseconds until it may be repeated */
  refuse(kind: OperationKind, scope: OperationScope, nowMs: number): number {
    const { identity, nodeName, isShared } = scope;
    const present = this.#failed.get(identity) ?? [];
    const same = present.find((one) => one.kind === kind && conflictsWith(one.scope, scope));
    const failures = (same?.failures ?? 0) + 1;
    const retryInMs = backoffMs(operationBackoff, failures);
    const failure: Failure = {
      kind,
      scope: { identity, nodeName, isShared },
      failures,
      retryAtMs: nowMs + retryInMs,
    };
    this.#failed.set(identity, [
      ...present.filter((one) => one.kind !== kind || !conflictsWith(one.scope, scope)),
      failure,
    ]);
    return retryInMs;
  }

  /** Forgets the failures of a disk that no pod wants and that is attached nowhere. */
  forget(identity: VolumeIdentity): void {
    this.#failed.delete(identity);
  }

  #end(operation: DiskOperation, isDone: boolean): void {
    const before = this.of(operation.identity);
    const rest = before.filter((one) => !isSame(one, operation));
    if (rest.length < before.length) this.#onEnd(operation, isDone);
    if (rest.length === 0) this.#underWay.delete(operation.identity);
    else this.#underWay.set(operation.identity, rest);
    if (operation.attachmentName !== undefined) this.#diskOf.delete(operation.attachmentName);
  }

  #keepFailures(identity: VolumeIdentity, keeps: (failure: Failure) => boolean): void {
    const rest = (this.#failed.get(identity) ?? []).filter(keeps);
    if (rest.length === 0) this.#failed.delete(identity);
    else this.#failed.set(identity, rest);
  }
}

/** Two operations of one disk conflict, unless both leave room for other nodes and are on different ones. */
export function conflictsWith(a: OperationScope, b: OperationScope): boolean {
  return !(a.isShared && b.isShared) || a.nodeName === b.nodeName;
}

function isSame(a: DiskOperation, b: DiskOperation): boolean {
  return a.kind === b.kind && a.nodeName === b.nodeName && a.startedAtMs === b.startedAtMs;
}
