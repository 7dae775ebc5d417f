/**
 * The next step for one disk. Pure. Source: docs/behaviour/controllers.md A7; docs/contract.md C1 and C2.
 *
 *     operations that have ended ──► detaches ──► attaches ──► wait
 *
 * Detach comes first, so that a disk whose pod moved is freed. Of several nodes the first with something to do goes first;
 * what waits on one node holds up no other, unless the disk may have one writer.
 */
import { conflictsWith } from "../disk-operations.ts";
import { decideAttach } from "./decide-attach.ts";
import { decideDetach } from "./decide-detach.ts";
import { decideOperation } from "./decide-operation.ts";
import type { DiskStep } from "./disk-step.ts";
import type { ObservedDisk } from "./observe-disk.ts";

/** Decides on one disk. */
export function decideDisk(observed: ObservedDisk): DiskStep {
  const { attachments, demands, operations } = observed;
  if (attachments.length + demands.length + operations.length === 0) return { step: "forgetDisk" };
  let waiting: Extract<DiskStep, { step: "wait" }> = {
    step: "wait",
    reason: "nothing to do",
    retryInMs: undefined,
  };
  for (const step of candidates(observed)) {
    if (step.step !== "wait") return step;
    if ((step.retryInMs ?? Number.POSITIVE_INFINITY) < (waiting.retryInMs ?? Number.POSITIVE_INFINITY)) {
      waiting = step;
    } else if (waiting.reason === "nothing to do") waiting = step;
  }
  return waiting;
}

/** What there is to do or to wait for, in the order in which it is done. */
function* candidates(observed: ObservedDisk): Iterable<DiskStep> {
  for (const operation of observed.operations) {
    const step = decideOperation(observed, operation);
    if (step !== undefined) yield step;
  }
  const isPending = (scope: { readonly nodeName: string; readonly isShared: boolean }) =>
    observed.operations.some(({ operation }) =>
      conflictsWith(operation, { identity: observed.identity, ...scope }),
    );
  for (const attachment of observed.attachments) {
    const step = decideDetach(observed, attachment, isPending(attachment));
    if (step !== undefined) yield step;
  }
  for (const demand of observed.demands) {
    const step = decideAttach(observed, demand, isPending(demand));
    if (step !== undefined) yield step;
  }
}
