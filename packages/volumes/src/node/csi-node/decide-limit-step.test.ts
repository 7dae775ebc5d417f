import { pureDecision } from "@longshore/kube/testing";
import { expect, it } from "vitest";
import { decideLimitStep, type ObservedLimit } from "./decide-limit-step.ts";

const decide = pureDecision(decideLimitStep);
const seen: ObservedLimit = { nowMs: 5000, endpoint: "unix:/d", periodSeconds: 60, nextMs: undefined };

it.each<[string, Partial<ObservedLimit>, ReturnType<typeof decideLimitStep>]>([
  ["one that is not registered", { endpoint: undefined, nextMs: 1 }, { step: "forget" }],
  ["one without a period", { periodSeconds: undefined, nextMs: 1 }, { step: "forget" }],
  ["one that has just registered", {}, { step: "schedule", atMs: 65_000 }],
  ["one whose period is too short", { periodSeconds: 1 }, { step: "schedule", atMs: 15_000 }],
  ["one whose period has been shortened", { nextMs: 605_000 }, { step: "schedule", atMs: 65_000 }],
  ["one whose time has not come", { nextMs: 6000 }, { step: "wait", ms: 1000 }],
  ["one whose time has come", { nextMs: 5000 }, { step: "ask", endpoint: "unix:/d", againAtMs: 65_000 }],
])("%s", (_, over, step) => {
  expect(decide({ ...seen, ...over })).toEqual(step);
});
