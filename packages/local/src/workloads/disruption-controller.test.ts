import type { Pod, PodDisruptionBudget, StatefulSet, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { decideDisruptionStatus } from "./disruption-controller.ts";

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
