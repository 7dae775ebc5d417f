/**
 * The time that one request may take the server's only thread. The work of a request is synchronous, so there is one
 * request at a time, and a variable of this module says which: it costs a request one reading of the clock, and a
 * loop one subtraction a step. Limits on sizes and steps are in their places; this bounds what is left.
 *
 * Loops over what a client has sent, or over what is stored, call {@link spendTime}. From the point of commit on there
 * is no more check: a change that is made is answered as made.
 */
import { KubeApiError } from "@longshore/kube/basics";
import type { Clock } from "@longshore/runtime";

/**
 * Most milliseconds of work for one request. The heaviest requests that sizes and steps permit take up to 2.5 s on an
 * ordinary machine. All others wait meanwhile: leases that are renewed within ten seconds (client-go's leader election)
 * must not be lost by it.
 */
export const workMsDefault = 5000;

/** Steps between two readings of the clock; a step takes from ten nanoseconds to some microseconds. */
const stepsPerReading = 1024;

interface Work {
  readonly clock: Clock;
  readonly end: number;
  /** The request has changed the store. */
  isCommitted: boolean;
  /** Its time was over at a check: it may change nothing more, even if the error was caught. */
  isOver: boolean;
}

let current: Work | undefined;
let stepsLeft = stepsPerReading;

/**
 * Runs the synchronous work of one request, which ends with 504 when it takes longer than `ms` milliseconds. Work within
 * such work is part of it; work that a commit sets off (readers that it wakes) is by itself.
 * @throws KubeApiError 504 `Timeout`: nothing is changed, and the request can be sent again
 */
export function withinWorkTime<T>(clock: Clock, ms: number, work: () => T): T {
  const outer = current;
  if (outer !== undefined && !outer.isCommitted) return work();
  current = { clock, end: clock.monotonicMs() + ms, isCommitted: false, isOver: false };
  stepsLeft = stepsPerReading;
  try {
    return work();
  } finally {
    current = outer;
    stepsLeft = stepsPerReading;
  }
}

/** One step of a loop, or as many as are done at once; outside of requests it does nothing. @throws KubeApiError 504 */
export function spendTime(steps = 1): void {
  stepsLeft -= steps;
  if (stepsLeft <= 0) checkTime();
}

/** Runs what keeps something for all requests, and must not be ended halfway through it. */
export function uninterrupted<T>(work: () => T): T {
  const outer = current;
  current = undefined;
  try {
    return work();
  } finally {
    current = outer;
  }
}

function checkTime(): void {
  stepsLeft = stepsPerReading;
  if (current === undefined || current.isCommitted || current.clock.monotonicMs() < current.end) return;
  current.isOver = true;
  throw workTimeOver();
}

/** The request changes the store now: from here on it is not ended. @throws KubeApiError 504 when it was before */
export function commitWork(): void {
  if (current === undefined) return;
  if (current.isOver) throw workTimeOver();
  current.isCommitted = true;
}

/**
 * A request that changes one object after the other may be ended between two of them; what it has done stays done.
 * @throws KubeApiError 504
 */
export function betweenCommits(): void {
  if (current === undefined) return;
  current.isCommitted = false;
  checkTime();
}

/** 504, as kube-apiserver ends a request that takes too long (apiserver server/filters/timeout.go). */
export function workTimeOver(): KubeApiError {
  return new KubeApiError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: "Timeout: request did not complete within the allotted timeout",
    reason: "Timeout",
    details: {},
    code: 504,
  });
}
