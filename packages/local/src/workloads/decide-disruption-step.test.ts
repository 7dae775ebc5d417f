/** The decision of the disruption controller, as a table. */
import type { Pod, PodDisruptionBudget, StatefulSet, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { expect, test } from "vitest";
import { decideDisruptionStep, type ObservedBudget } from "./decide-disruption-step.ts";

const metadata = (name: string, more: object = {}) => ({
  name,
  namespace: "default",
  uid: name,
  resourceVersion: "1",
  ...more,
});
const aBudget = (status?: object, more: object = {}) =>
  ({
    metadata: metadata("b", { generation: 3, ...more }),
    spec: { maxUnavailable: 1 },
    ...(status === undefined ? {} : { status }),
  }) as Stored<PodDisruptionBudget>;
const set: Stored<StatefulSet> = {
  metadata: metadata("s"),
  spec: { serviceName: "s", replicas: 2, selector: {}, template: {} },
};
const aPod = (name: string): Stored<Pod> => ({
  metadata: metadata(name, {
    creationTimestamp: "2026-01-01T00:00:00Z",
    ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "s", uid: "s" }],
  }),
  status: { conditions: [{ type: "Ready", status: "True" }] },
});

const counts = { expectedPods: 2, currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1 };
const shown = { ...counts, observedGeneration: 3 };
const evictedAt = "2026-01-01T00:00:10Z";
const afterEviction = { ...shown, currentHealthy: 1, disruptionsAllowed: 0 };
const spent = { ...afterEviction, disruptedPods: { p0: evictedAt } };

const table: readonly [string, Stored<PodDisruptionBudget>, Partial<ObservedBudget>, object][] = [
  ["no status yet", aBudget(), {}, { step: "writeStatus", status: shown }],
  ["all is said", aBudget(shown), {}, { step: "settle" }],
  [
    "a count has changed",
    aBudget({ ...shown, currentHealthy: 1 }),
    {},
    { step: "writeStatus", status: shown },
  ],
  [
    "the budget has changed",
    aBudget({ ...shown, observedGeneration: 2 }),
    {},
    { step: "writeStatus", status: shown },
  ],
  ["the status is written", aBudget(), { isWritten: true }, { step: "settle" }],
  [
    "a budget that is being deleted",
    aBudget(undefined, { deletionTimestamp: "now" }),
    {},
    { step: "settle" },
  ],
  [
    "an eviction whose deletion is not seen counts",
    aBudget({ ...spent, disruptionsAllowed: 1 }),
    {},
    { step: "writeStatus", status: afterEviction },
  ],
  ["it is counted again after its time", aBudget(spent), {}, { step: "waitForEvictions" }],
  [
    "also when the status has just been written",
    aBudget(spent),
    { isWritten: true },
    { step: "waitForEvictions" },
  ],
  [
    "a pod that was seen to go after its eviction is taken out",
    aBudget(spent),
    { goneMs: new Map([["p0", Date.parse(evictedAt) + 400]]) },
    { step: "writeStatus", status: { ...shown, disruptedPods: { p0: null } } },
  ],
  [
    "an eviction that came to nothing is taken out",
    aBudget(spent),
    { now: new Date("2026-01-01T00:02:10Z") },
    { step: "writeStatus", status: { ...shown, disruptedPods: { p0: null } } },
  ],
];

test.each(table)("%s", (_name, budget, more, expected) => {
  const observed: ObservedBudget = {
    budget,
    pods: [aPod("p0"), aPod("p1")],
    sets: [set],
    goneMs: new Map(),
    now: new Date("2026-01-01T00:00:11Z"),
    isWritten: false,
    ...more,
  };
  expect(pureDecision(decideDisruptionStep)(observed)).toEqual(expected);
});
