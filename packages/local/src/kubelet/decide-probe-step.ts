/**
 * What comes next for one probe of a container. Pure. Source: core/v1 Probe; kubernetes pkg/kubelet/prober worker.go.
 *
 * The verdict counts for one run of the container. Until the startup probe has succeeded, the others wait.
 */
import type { Probe } from "@longshore/kube";
import type { RunningContainer } from "../containers/pod-runtime.ts";
import type { ProbeType } from "./container-plan.ts";
import type { ProbeFailure } from "./run-probe.ts";

/** What a probe has found so far, in one run of its container. */
export interface ProbeResult {
  readonly attempt: number;
  /** When it last ran, in milliseconds since 1970. */
  readonly lastMs: number;
  /** Successes in a row, or failures. */
  readonly successes: number;
  readonly failures: number;
  /** What the thresholds have decided; undefined: nothing yet. */
  readonly verdict: boolean | undefined;
}

/** What is seen of a probe. */
export interface ObservedProbe {
  readonly type: ProbeType;
  /** Undefined: the container has no such probe any more. */
  readonly probe: Probe | undefined;
  /** Undefined: the container does not run. */
  readonly run: RunningContainer | undefined;
  readonly result: ProbeResult | undefined;
  /** The startup probe has succeeded in this run, or there is none. */
  readonly isStarted: boolean;
  readonly nowMs: number;
  /** What this pass has found. */
  readonly outcome?: { readonly failure: ProbeFailure };
}

/** One action. */
export type ProbeStep =
  /** The container does not run: it is woken with the next run. */
  | { readonly step: "forget" }
  | { readonly step: "wait"; readonly ms: number }
  | { readonly step: "probe"; readonly probe: Probe; readonly timeoutMs: number }
  | {
      readonly step: "record";
      readonly result: ProbeResult;
      readonly failure: ProbeFailure;
      readonly isNews: boolean;
      readonly nextMs: number;
    }
  /** The verdict will not change. */
  | { readonly step: "settle" };

/** How often a probe looks whether the container has started, in milliseconds. */
const startCheckMs = 1000;

/** Decides on the next step. */
export function decideProbeStep(observed: ObservedProbe): ProbeStep {
  const { type, probe, run, isStarted, nowMs, outcome } = observed;
  if (probe === undefined || run === undefined) return { step: "forget" };
  const result = observed.result?.attempt === run.attempt ? observed.result : undefined;
  if (isFinal(type, result?.verdict)) return { step: "settle" };
  if (type !== "startup" && !isStarted) return { step: "wait", ms: startCheckMs };
  if (outcome !== undefined) return recordOf(observed, probe, run, result, outcome.failure);
  const periodMs = periodMsOf(probe);
  const dueMs =
    result === undefined
      ? Date.parse(run.startedAt) + 1000 * (probe.initialDelaySeconds ?? 0)
      : result.lastMs + periodMs;
  // A clock that was set back does not prolong the wait.
  const ms = Math.min(dueMs - nowMs, Math.max(periodMs, 1000 * (probe.initialDelaySeconds ?? 0)));
  if (ms > 0) return { step: "wait", ms };
  return { step: "probe", probe, timeoutMs: 1000 * (probe.timeoutSeconds ?? 1) };
}

function recordOf(
  { type, nowMs }: ObservedProbe,
  probe: Probe,
  { attempt }: RunningContainer,
  before: ProbeResult | undefined,
  failure: ProbeFailure,
): ProbeStep {
  const successes = failure === undefined ? (before?.successes ?? 0) + 1 : 0;
  const failures = failure === undefined ? 0 : (before?.failures ?? 0) + 1;
  const verdict =
    successes >= (probe.successThreshold ?? 1)
      ? true
      : failures >= (probe.failureThreshold ?? 3)
        ? false
        : before?.verdict;
  return {
    step: "record",
    result: { attempt, lastMs: nowMs, successes, failures, verdict },
    failure,
    isNews: verdict !== before?.verdict,
    nextMs: isFinal(type, verdict) ? 0 : periodMsOf(probe),
  };
}

/** A container whose startup or liveness probe has failed is started again, which is another run. */
function isFinal(type: ProbeType, verdict: boolean | undefined): boolean {
  return (verdict === false && type !== "readiness") || (verdict === true && type === "startup");
}

function periodMsOf({ periodSeconds = 10 }: Probe): number {
  return 1000 * Math.max(1, periodSeconds);
}
