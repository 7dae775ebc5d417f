/** The decision of the StatefulSet controller, as a table; what a set needs is in `plan-stateful-set.test.ts`. */
import type { Pod, StatefulSet, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, test } from "vitest";
import {
  decideStatefulSetStep,
  noProgress,
  type PlanProgress,
  type StatefulSetStep,
} from "./decide-stateful-set-step.ts";

const metadata = (name: string, more: object = {}) => ({
  name,
  namespace: "prod",
  uid: `uid-${name}`,
  resourceVersion: "1",
  ...more,
});
const aSet = (spec: object = {}, status?: StatefulSet["status"]): Stored<StatefulSet> => ({
  metadata: metadata("web", { generation: 2 }),
  spec: {
    serviceName: "web",
    replicas: 2,
    podManagementPolicy: "Parallel",
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c" }] } },
    volumeClaimTemplates: ["data", "log"].map((name) => ({ metadata: { name } })),
    ...spec,
  },
  ...(status === undefined ? {} : { status }),
});
const aPod = (name: string, phase = "Running", more: object = {}): Stored<Pod> => ({
  metadata: metadata(name, more),
  status: { phase, conditions: [{ type: "Ready", status: "True" }] },
});
const going = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const counts = (replicas: number, readyReplicas = replicas, observedGeneration = 2) => ({
  replicas,
  readyReplicas,
  currentReplicas: replicas,
  updatedReplicas: replicas,
  availableReplicas: readyReplicas,
  observedGeneration,
});

/** The step and what it is about. */
function nameOf(step: StatefulSetStep): string {
  if (step.step === "deletePod" || step.step === "createPod" || step.step === "adoptPod")
    return `${step.step} ${step.pod.metadata?.name}`;
  if (step.step === "createClaim") return `createClaim ${step.claim.metadata?.name}`;
  if (step.step === "reportStatus") return `reportStatus ${JSON.stringify(step.status)}`;
  return step.step;
}
const report = (...numbers: [number, number?]) => `reportStatus ${JSON.stringify(counts(...numbers))}`;

const none: readonly Stored<Pod>[] = [];
const both = [aPod("web-0"), aPod("web-1")];
const failed = [aPod("web-0", "Failed")];
const table: readonly [string, Stored<StatefulSet>, readonly Stored<Pod>[], Partial<PlanProgress>, string][] =
  [
    ["claims come before their pod", aSet(), none, {}, "createClaim data-web-0"],
    ["the next claim", aSet(), none, { claimsCreated: 1 }, "createClaim log-web-0"],
    ["the pod after its claims", aSet(), none, { claimsCreated: 2 }, "createPod web-0"],
    ["the next ordinal", aSet(), none, { podsCreated: 1 }, "createClaim data-web-1"],
    ["counts are those of the observation", aSet(), none, { podsCreated: 2 }, report(0)],
    [
      "in order, only the first is made",
      aSet({ podManagementPolicy: "OrderedReady" }),
      none,
      { podsCreated: 1 },
      report(0),
    ],
    ["a failed pod goes before another is made", aSet(), failed, {}, "deletePod web-0"],
    ["then the ordinals that have no pod", aSet(), failed, { podsDeleted: 1 }, "createClaim data-web-1"],
    [
      "an ordinal whose pod is being deleted gets no second one",
      aSet({ replicas: 1 }),
      [aPod("web-0", "Running", going)],
      {},
      report(1, 0),
    ],
    [
      "an ordinal whose failed pod is being deleted gets no second one",
      aSet({ replicas: 1 }),
      [aPod("web-0", "Failed", going)],
      {},
      report(1, 0),
    ],
    [
      "a pod that was deleted in this pass is not made again in it",
      aSet({ replicas: 1 }),
      failed,
      { podsDeleted: 1 },
      report(1, 1),
    ],
    ["what is too much goes", aSet({ replicas: 1 }), both, {}, "deletePod web-1"],
    ["all is there", aSet({}, counts(2)), both, {}, "settle"],
    [
      "a count of zero may be left out",
      aSet({ replicas: 0 }, { replicas: 0, observedGeneration: 2 }),
      none,
      {},
      "settle",
    ],
    ["another generation", aSet({}, counts(2, 2, 1)), both, {}, report(2)],
    ["no status yet", aSet(), both, {}, report(2)],
  ];

test.each(table)("%s", (_name, set, pods, progress, expected) => {
  const seen = { set, pods, orphans: [], progress: { ...noProgress, ...progress } };
  const step = pureDecision(decideStatefulSetStep)(seen);
  expect(nameOf(step)).toBe(expected);
});

describe("pods that nothing controls", () => {
  const labels = { labels: { app: "web" } };
  const orphan = aPod("web-0", "Running", labels);
  const step = (orphans: readonly Stored<Pod>[], more: object = {}, progress: Partial<PlanProgress> = {}) =>
    nameOf(
      decideStatefulSetStep({
        set: { ...aSet({ replicas: 1 }), metadata: metadata("web", { generation: 2, ...more }) },
        pods: [],
        orphans,
        progress: { ...noProgress, ...progress },
      }),
    );

  test("are adopted where the selector matches them and their name is an ordinal's", () => {
    expect(step([orphan])).toBe("adoptPod web-0");
    expect(step([orphan], {}, { podsAdopted: 1 })).toBe(report(1));
  });

  test("are left alone otherwise", () => {
    expect(step([aPod("web-0", "Running", { labels: { app: "other" } })])).toBe("createClaim data-web-0");
    expect(step([aPod("web-x", "Running", labels)])).toBe("createClaim data-web-0");
    expect(step([aPod("web-0", "Succeeded", labels)])).toBe("createClaim data-web-0");
  });

  test("are neither adopted nor deleted by a set that is being deleted", () => {
    expect(step([orphan], going)).toBe(report(0));
  });
});

test("a set that is being deleted deletes none of its pods: the garbage collector takes them, or leaves them", () => {
  const set = { ...aSet({ replicas: 1 }), metadata: metadata("web", { generation: 2, ...going }) };
  expect(nameOf(decideStatefulSetStep({ set, pods: both, orphans: [], progress: noProgress }))).toBe(
    report(2),
  );
});
