/** The decision of a probe, as a table: when it runs, and when its thresholds decide. */
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideProbeStep, type ObservedProbe, type ProbeResult } from "./decide-probe-step.ts";

const decide = pureDecision(decideProbeStep);
const nowMs = Date.parse("2026-01-01T00:10:00Z");
const run = {
  kind: "running",
  attempt: 1,
  quickRestarts: 0,
  startedAt: new Date(nowMs - 3000).toISOString(),
} as const;
const resultOf = (more: Partial<ProbeResult>): ProbeResult => ({
  attempt: 1,
  lastMs: nowMs - 10_000,
  successes: 0,
  failures: 0,
  verdict: undefined,
  ...more,
});
const observedOf = (more: Partial<ObservedProbe>): ObservedProbe => ({
  type: "liveness",
  probe: {},
  run,
  result: undefined,
  isStarted: true,
  nowMs,
  ...more,
});
const ok = { failure: undefined };
const bad = { failure: "no" };

describe("a probe", () => {
  it.each<[string, Partial<ObservedProbe>, object]>([
    ["is forgotten when the container does not run", { run: undefined }, { step: "forget" }],
    ["is forgotten when the pod has none any more", { probe: undefined }, { step: "forget" }],
    ["runs at once", {}, { step: "probe", timeoutMs: 1000 }],
    ["waits for its first time", { probe: { initialDelaySeconds: 5 } }, { step: "wait", ms: 2000 }],
    ["waits for the startup probe", { isStarted: false }, { step: "wait", ms: 1000 }],
    ["runs, a startup probe itself, before that", { type: "startup", isStarted: false }, { step: "probe" }],
    ["waits for its period", { result: resultOf({ lastMs: nowMs - 4000 }) }, { step: "wait", ms: 6000 }],
    [
      "runs after its period",
      { result: resultOf({}), probe: { timeoutSeconds: 3 } },
      { step: "probe", timeoutMs: 3000 },
    ],
    [
      "does not wait longer when the clock was set back",
      { result: resultOf({ lastMs: nowMs + 90_000 }) },
      { step: "wait", ms: 10_000 },
    ],
    ["begins again with a new run", { result: resultOf({ attempt: 0, verdict: false }) }, { step: "probe" }],
    [
      "decides with the first success",
      { outcome: ok },
      { step: "record", isNews: true, result: { verdict: true } },
    ],
    [
      "or with as many as its threshold says",
      { outcome: ok, probe: { successThreshold: 2 } },
      { step: "record", isNews: false, result: { verdict: undefined, successes: 1 } },
    ],
    [
      "keeps its verdict until enough have failed",
      { outcome: bad, result: resultOf({ verdict: true, successes: 4, failures: 0 }) },
      { step: "record", isNews: false, nextMs: 10_000, result: { verdict: true, successes: 0, failures: 1 } },
    ],
    [
      "and then changes it",
      { outcome: bad, result: resultOf({ verdict: true, failures: 2 }) },
      { step: "record", isNews: true, nextMs: 0, result: { verdict: false } },
    ],
    [
      "of readiness goes on after a failure",
      { type: "readiness", outcome: bad, result: resultOf({ verdict: true, failures: 2 }) },
      { step: "record", isNews: true, nextMs: 10_000, result: { verdict: false } },
    ],
    ["of liveness does not", { result: resultOf({ verdict: false }) }, { step: "settle" }],
    [
      "of startup ends with its success",
      { type: "startup", result: resultOf({ verdict: true }) },
      { step: "settle" },
    ],
  ])("%s", (_name, more, expected) => expect(decide(observedOf(more))).toMatchObject(expected));
});
