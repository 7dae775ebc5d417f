/**
 * Decides what a candidate does with a Lease: pure functions of the record and of how long it has
 * been seen unchanged (the semantics of k8s.io/client-go/tools/leaderelection).
 */

import type { Lease, LeaseSpec } from "kubernetes-types/coordination/v1.js";
import { microTime } from "../api-time.ts";

/** Who we are and how we hold a lease. */
export interface Candidate {
  readonly name: string;
  readonly namespace: string;
  readonly identity: string;
  readonly leaseDurationMs: number;
}

/** A record and since when, on the monotonic clock, it has looked like this. */
export interface ObservedLease {
  readonly fingerprint: string;
  readonly sinceMs: number;
}

/** Identifies one state of the lease. Times from other machines are only compared for equality, never trusted. */
export function leaseFingerprint(lease: Lease): string {
  const { holderIdentity, renewTime, acquireTime, leaseTransitions } = lease.spec ?? {};
  return JSON.stringify([lease.metadata?.uid, holderIdentity, renewTime, acquireTime, leaseTransitions]);
}

/** True while someone else may hold the lease: it has an owner, and changed less than its duration ago. */
export function isHeldByOther(
  lease: Lease,
  candidate: Candidate,
  observed: ObservedLease,
  nowMs: number,
): boolean {
  const { holderIdentity, leaseDurationSeconds } = lease.spec ?? {};
  if (holderIdentity === undefined || holderIdentity === "" || holderIdentity === candidate.identity) {
    return false;
  }
  // The holder counts with its own duration, which may be longer than ours.
  const durationMs = Math.max(candidate.leaseDurationMs, (leaseDurationSeconds ?? 0) * 1000);
  return nowMs < observed.sinceMs + durationMs;
}

/** The record with which we take or keep the lease. */
export function heldSpec(candidate: Candidate, previous: LeaseSpec | undefined, now: Date): LeaseSpec {
  const at = microTime(now);
  const isOurs = previous?.holderIdentity === candidate.identity;
  return {
    holderIdentity: candidate.identity,
    leaseDurationSeconds: Math.max(1, Math.ceil(candidate.leaseDurationMs / 1000)),
    acquireTime: isOurs ? (previous?.acquireTime ?? at) : at,
    renewTime: at,
    leaseTransitions: previous === undefined ? 0 : (previous.leaseTransitions ?? 0) + (isOurs ? 0 : 1),
  };
}

/** The record that releases the lease, so that the next candidate need not wait. */
export function releasedSpec(previous: LeaseSpec | undefined, now: Date): LeaseSpec {
  const at = microTime(now);
  return {
    holderIdentity: "",
    // As client-go: the server refuses a Lease of 0 seconds.
    leaseDurationSeconds: 1,
    acquireTime: at,
    renewTime: at,
    leaseTransitions: previous?.leaseTransitions ?? 0,
  };
}
