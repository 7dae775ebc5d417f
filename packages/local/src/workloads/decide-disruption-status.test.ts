import type { Pod, PodDisruptionBudget, StatefulSet, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { decideDisruptionStatus } from "./decide-disruption-status.ts";
import { pendingEvictions } from "./pending-evictions.ts";

const set = { metadata: { uid: "s" }, spec: { replicas: 3 } } as Stored<StatefulSet>;
const pod = (ready: boolean, deleting = false) =>
  ({
    metadata: {
      ownerReferences: [{ uid: "s" }],
      ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  }) as unknown as Stored<Pod>;
const budget = (spec: object) => ({ spec }) as PodDisruptionBudget;

describe("decideDisruptionStatus", () => {
  const cases = [
    {
      name: "all healthy, one may go",
      spec: { maxUnavailable: 1 },
      pods: [pod(true), pod(true), pod(true)],
      allowed: 1,
    },
    {
      name: "one is missing: none may go",
      spec: { maxUnavailable: 1 },
      pods: [pod(true), pod(true)],
      allowed: 0,
    },
    {
      name: "one is being deleted: none may go",
      spec: { maxUnavailable: 1 },
      pods: [pod(true), pod(true), pod(true, true)],
      allowed: 0,
    },
    { name: "minAvailable", spec: { minAvailable: 1 }, pods: [pod(true), pod(true), pod(true)], allowed: 2 },
    {
      name: "a percentage is rounded up",
      spec: { minAvailable: "50%" },
      pods: [pod(true), pod(true), pod(false)],
      allowed: 0,
    },
    { name: "no pods at all: nothing may go", spec: { maxUnavailable: 1 }, pods: [], allowed: 0 },
  ];
  for (const { name, spec, pods, allowed } of cases) {
    it(name, () => {
      expect(decideDisruptionStatus(budget(spec), pods, [set]).disruptionsAllowed).toBe(allowed);
    });
  }
});

describe("pendingEvictions", () => {
  const at = "2026-01-01T00:00:10Z";
  const spent = { status: { disruptedPods: { w: at } } } as unknown as PodDisruptionBudget;
  const named = (over: object = {}) =>
    ({
      metadata: {
        name: "w",
        creationTimestamp: "2026-01-01T00:00:10Z",
        ownerReferences: [{ uid: "s" }],
        ...over,
      },
      status: { conditions: [{ type: "Ready", status: "True" }] },
    }) as unknown as Stored<Pod>;
  const soon = new Date("2026-01-01T00:00:11Z");

  it("a pod that was let go counts as gone before its deletion is seen", () => {
    const evicted = pendingEvictions(spent, [named()], soon);
    expect(evicted).toEqual({ w: at });
    const pods = [named(), pod(true), pod(true)];
    const rule = budget({ maxUnavailable: 1 });
    expect(decideDisruptionStatus(rule, pods, [set]).disruptionsAllowed).toBe(1);
    expect(decideDisruptionStatus(rule, pods, [set], evicted).disruptionsAllowed).toBe(0);
  });
  it.each([
    ["its deletion is seen", [named({ deletionTimestamp: at })], soon, undefined],
    ["it is gone", [], soon, undefined],
    ["its successor was made later", [named({ creationTimestamp: "2026-01-01T00:00:11Z" })], soon, undefined],
    ["its successor is there in the same second, it was seen to go", [named()], soon, Date.parse(at) + 400],
    ["nothing came of it for two minutes", [named()], new Date("2026-01-01T00:02:10Z"), undefined],
  ] as const)("no longer when %s", (_why, pods, now, goneMs) => {
    expect(pendingEvictions(spent, pods, now, () => goneMs)).toEqual({});
  });
  it("a pod of that name that went before does not count", () => {
    expect(pendingEvictions(spent, [named()], soon, () => Date.parse(at) - 1)).toEqual({ w: at });
  });
});
