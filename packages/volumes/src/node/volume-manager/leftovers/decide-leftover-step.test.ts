/** What comes next for a directory that was not understood, as a table. Source: docs/behaviour/node-agent.md 9. */
import { pureDecision } from "@longshore/kube/testing";
import { expect, it } from "vitest";
import { decideLeftoverStep, type ObservedLeftover } from "./decide-leftover-step.ts";

const decide = pureDecision(decideLeftoverStep);
const unused: ObservedLeftover = { nowMs: 1000, isKnownAgain: false, mayUnmount: true, retryAtMs: 0 };

it.each<[string, ObservedLeftover, object]>([
  ["is unmounted by name once nothing can use it", unused, { step: "unmount" }],
  ["stays while a pod may use it", { ...unused, mayUnmount: false }, { step: "settle" }],
  [
    "belongs to the volume that is mounted there again",
    { ...unused, isKnownAgain: true },
    { step: "forget" },
  ],
  ["does so while its pod uses it", { ...unused, isKnownAgain: true, mayUnmount: false }, { step: "forget" }],
  ["waits after a failure", { ...unused, retryAtMs: 1500 }, { step: "wait", ms: 500 }],
  ["is tried again once that is due", { ...unused, retryAtMs: 1000 }, { step: "unmount" }],
])("a directory that was not understood %s", (_name, observed, step) => {
  expect(decide(observed)).toEqual(step);
});
