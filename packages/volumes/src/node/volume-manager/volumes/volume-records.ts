/**
 * What the passes over a volume leave for the next one: failures with their back-off, and when its attachment is
 * looked for. Source: docs/behaviour/node-agent.md 7.1, "Starting rule".
 *
 * Invariants
 *  - A failed operation is repeated only after its back-off, 500 ms doubling to 2 min 2 s, whatever wakes the volume.
 *  - Success forgets the failures; a failure of another operation on the same mount begins at the first delay.
 *  - No failure of a pod outlives the next one after the pod has gone.
 */
import type { Node } from "@longshore/kube";
import { backoffMs } from "@longshore/runtime";
import { operationBackoff } from "../../../framework/operation-backoff.ts";
import type { UniqueVolumeName } from "../../../framework/unique-volume-name.ts";

/** What is done to a volume, by the names of docs/behaviour/node-agent.md 7.1. */
export type VolumeOperation =
  | "verify_controller_attached_volume"
  | "volume_mount"
  | "volume_unmount"
  | "unmount_device"
  | "volume_fs_resize"
  | "volume_republish"
  | "map_volume"
  | "unmap_volume"
  | "unmap_device";

/** An operation that failed and has to wait. */
export interface OperationFailure {
  readonly operation: VolumeOperation;
  /** One after the other. */
  readonly failures: number;
  /** Monotonic time in milliseconds before which it is not repeated. */
  readonly retryAtMs: number;
  /** Why it failed the last time. */
  readonly reason: string;
}

/** What is known of a volume besides its states. */
export interface VolumeRecord {
  /** By pod UID; under {@link wholeVolume} what concerns the device or the attachment. */
  readonly failures: ReadonlyMap<string, OperationFailure>;
  /** Monotonic time in milliseconds at which the live Node is read although the cached one lists no attachment. */
  readonly lookAtMs: number | undefined;
  /** The cached Node as it was when the live one did not list the volume. */
  readonly refuted: Node | undefined;
}

/** The subject of what concerns no single pod. */
export const wholeVolume = "";

const nothing: VolumeRecord = { failures: new Map(), lookAtMs: undefined, refuted: undefined };

/** The records of all volumes. */
export class VolumeRecords {
  readonly #records = new Map<UniqueVolumeName, VolumeRecord>();

  of(uniqueName: UniqueVolumeName): VolumeRecord {
    return this.#records.get(uniqueName) ?? nothing;
  }

  /** Notes a failure at `nowMs`, monotonic milliseconds. @returns it, with the time of its repetition */
  failed(
    uniqueName: UniqueVolumeName,
    subject: string,
    failure: Pick<OperationFailure, "operation" | "reason">,
    nowMs: number,
  ): OperationFailure {
    const record = this.of(uniqueName);
    const earlier = record.failures.get(subject);
    const failures = earlier?.operation === failure.operation ? earlier.failures + 1 : 1;
    const noted = { ...failure, failures, retryAtMs: nowMs + backoffMs(operationBackoff, failures) };
    this.#records.set(uniqueName, { ...record, failures: new Map(record.failures).set(subject, noted) });
    return noted;
  }

  /** Forgets the failures of pods that the volume does not concern any more. */
  keepOnly(uniqueName: UniqueVolumeName, isConcerned: (podUID: string) => boolean): void {
    const record = this.of(uniqueName);
    const failures = [...record.failures].filter(
      ([subject]) => subject === wholeVolume || isConcerned(subject),
    );
    if (failures.length < record.failures.size)
      this.#records.set(uniqueName, { ...record, failures: new Map(failures) });
  }

  /** Notes that an operation on the subject succeeded. */
  succeeded(uniqueName: UniqueVolumeName, subject: string): void {
    const record = this.#records.get(uniqueName);
    if (record?.failures.has(subject) !== true) return;
    const failures = new Map(record.failures);
    failures.delete(subject);
    this.#records.set(uniqueName, { ...record, failures });
  }

  /** Notes when the live Node is to be read, and which cached one was proved wrong. */
  look(uniqueName: UniqueVolumeName, look: Pick<VolumeRecord, "lookAtMs" | "refuted">): void {
    this.#records.set(uniqueName, { ...this.of(uniqueName), ...look });
  }

  /** The volume is neither desired nor here. */
  forget(uniqueName: UniqueVolumeName): void {
    this.#records.delete(uniqueName);
  }
}
