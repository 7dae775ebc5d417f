/** The decision of the StatefulSet controller, as a table; what a set needs is in `plan-stateful-set.test.ts`. */
import type { ControllerRevision, Pod, StatefulSet, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, test } from "vitest";
import {
  decideStatefulSetStep,
  noProgress,
  type ObservedStatefulSet,
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
type Loose = { readonly labels?: object; readonly [more: string]: unknown };
const templateOf = (container: string) => ({
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: container }] },
});
const aSet = (spec: object = {}, status?: StatefulSet["status"]): Stored<StatefulSet> => ({
  metadata: metadata("web", { generation: 2 }),
  spec: {
    serviceName: "web",
    replicas: 2,
    podManagementPolicy: "Parallel",
    selector: { matchLabels: { app: "web" } },
    template: templateOf("c"),
    volumeClaimTemplates: ["data", "log"].map((name) => ({ metadata: { name } })),
    ...spec,
  },
  ...(status === undefined ? {} : { status }),
});
/** A revision `web-rN`; it has the template of {@link aSet} unless another is given. */
const aRevision = (number: number, template: object = templateOf("c"), more: object = {}) =>
  ({
    metadata: metadata(`web-r${number}`, { labels: { app: "web" }, ...more }),
    revision: number,
    data: { spec: { template: { ...template, $patch: "replace" } } },
  }) as Stored<ControllerRevision>;
const revised = { "controller-revision-hash": "web-r1" };
const aPod = (name: string, phase = "Running", { labels = {}, ...more }: Loose = {}): Stored<Pod> => ({
  metadata: metadata(name, { labels: { ...revised, ...labels }, ...more }),
  status: { phase, conditions: [{ type: "Ready", status: "True" }] },
});
const going = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const counts = (replicas: number, readyReplicas = replicas, observedGeneration = 2) => ({
  replicas,
  readyReplicas,
  availableReplicas: readyReplicas,
  observedGeneration,
  currentRevision: "web-r1",
  updateRevision: "web-r1",
  currentReplicas: readyReplicas,
  updatedReplicas: readyReplicas,
});
const observed = (set: Stored<StatefulSet>, more: Partial<ObservedStatefulSet>): ObservedStatefulSet => ({
  set,
  pods: [],
  orphans: [],
  revisions: [aRevision(1)],
  orphanRevisions: [],
  now: new Date(0),
  progress: noProgress,
  ...more,
});

/** The step and what it is about. */
function nameOf(step: StatefulSetStep): string {
  if (step.step === "deletePod" || step.step === "createPod" || step.step === "adoptPod")
    return `${step.step} ${step.pod.metadata?.name}`;
  if ("revision" in step) return `${step.step} ${step.revision.metadata?.name}`;
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
      aSet(
        { replicas: 0 },
        { replicas: 0, observedGeneration: 2, currentRevision: "web-r1", updateRevision: "web-r1" },
      ),
      none,
      {},
      "settle",
    ],
    ["another generation", aSet({}, counts(2, 2, 1)), both, {}, report(2)],
    ["no status yet", aSet(), both, {}, report(2)],
  ];

test.each(table)("%s", (_name, set, pods, progress, expected) => {
  const seen = observed(set, { pods, progress: { ...noProgress, ...progress } });
  const step = pureDecision(decideStatefulSetStep)(seen);
  expect(nameOf(step)).toBe(expected);
});

describe("pods that nothing controls", () => {
  const labels = { labels: { app: "web" } };
  const orphan = aPod("web-0", "Running", labels);
  const step = (orphans: readonly Stored<Pod>[], more: object = {}, progress: Partial<PlanProgress> = {}) =>
    nameOf(
      decideStatefulSetStep(
        observed(
          { ...aSet({ replicas: 1 }), metadata: metadata("web", { generation: 2, ...more }) },
          { orphans, progress: { ...noProgress, ...progress } },
        ),
      ),
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
  expect(nameOf(decideStatefulSetStep(observed(set, { pods: both })))).toBe(report(2));
});

describe("the revision of the template", () => {
  const other = templateOf("other");
  const step = (more: Partial<ObservedStatefulSet>, set = aSet({}, counts(2))) =>
    decideStatefulSetStep(observed(set, { pods: both, ...more }));

  test("is made before a pod is", () => {
    const made = step({ pods: [], revisions: [] }) as Extract<StatefulSetStep, { step: "createRevision" }>;
    expect(made).toMatchObject({
      step: "createRevision",
      revision: {
        metadata: {
          name: expect.stringMatching(/^web-[a-z0-9]{10}$/),
          namespace: "prod",
          labels: { app: "web", "controller.kubernetes.io/hash": expect.any(String) },
          ownerReferences: [{ kind: "StatefulSet", name: "web", uid: "uid-web", controller: true }],
        },
        data: { spec: { template: { ...templateOf("c"), $patch: "replace" } } },
        revision: 1,
      },
      collisions: 0,
    });
  });

  test("has another name where one was another template's", () => {
    const nameOfMade = (collisionCount?: number) =>
      nameOf(step({ revisions: [] }, aSet({}, { replicas: 2, ...(collisionCount && { collisionCount }) })));
    expect(nameOfMade(1)).not.toBe(nameOfMade());
    expect(nameOfMade(1)).toMatch(/^createRevision web-/);
  });

  test("of another template is the next one", () => {
    expect(step({ revisions: [aRevision(4, other)] })).toMatchObject({ revision: { revision: 5 } });
  });

  test("that was there before is the last one again", () => {
    const revisions = [aRevision(1), aRevision(2, other)];
    expect(step({ revisions })).toMatchObject({
      step: "numberRevision",
      revision: { metadata: { name: "web-r1" } },
      number: 3,
    });
  });

  test("is that of an orphan, which is adopted before pods are looked at", () => {
    const orphans = [aPod("web-0", "Running", { labels: { app: "web" } })];
    expect(nameOf(step({ revisions: [], orphanRevisions: [aRevision(1)], orphans }))).toBe(
      "adoptRevision web-r1",
    );
    const stranger = aRevision(1, other, { labels: { app: "db" } });
    expect(nameOf(step({ orphanRevisions: [stranger] }))).toBe("settle");
  });

  test("is kept while a pod, the status or the history needs it", () => {
    const last = aRevision(9);
    const old = [1, 2, 3, 4].map((number) => aRevision(number, templateOf(`c${number}`)));
    const set = (limit: number) =>
      aSet({ revisionHistoryLimit: limit }, { replicas: 2, currentRevision: "web-r2" });
    const of9 = { labels: { "controller-revision-hash": "web-r9" } };
    const pods = [aPod("web-0", "Running", of9), aPod("web-1", "Running", of9)];
    const next = (limit: number, more: object = {}) =>
      nameOf(step({ revisions: [last, ...old], pods, ...more }, set(limit)));
    expect(next(2)).toBe("removeRevision web-r1");
    expect(next(3)).toMatch(/^reportStatus/);
    // One pod, in a partition's lower part, still has the first.
    const partition = { type: "RollingUpdate", rollingUpdate: { partition: 1 } };
    const mixed = [aPod("web-0"), aPod("web-1", "Running", of9)];
    const partitioned = set(1);
    const spec = { ...partitioned.spec, updateStrategy: partition } as StatefulSet["spec"];
    expect(
      nameOf(
        step({ revisions: [last, ...old], pods: mixed }, { ...partitioned, spec } as typeof partitioned),
      ),
    ).toBe("removeRevision web-r3");
  });
});

describe("while a template is rolled out", () => {
  const revisions = [aRevision(1, templateOf("before")), aRevision(2)];
  const updated = { labels: { "controller-revision-hash": "web-r2" } };
  const status = { ...counts(2), updateRevision: "web-r2" };
  const step = (spec: object, pods: readonly Stored<Pod>[], progress: Partial<PlanProgress> = {}) =>
    decideStatefulSetStep(
      observed(aSet({ volumeClaimTemplates: [], ...spec }, status), {
        pods,
        revisions,
        progress: { ...noProgress, ...progress },
      }),
    );
  const partition = { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } };
  const madeWith = (made: StatefulSetStep) =>
    made.step === "createPod"
      ? [made.pod.metadata?.labels?.["controller-revision-hash"], made.pod.spec?.containers[0]?.name]
      : made.step;

  test("the highest ordinal goes first, and is made of the new one", () => {
    expect(nameOf(step({}, both))).toBe("deletePod web-1");
    expect(madeWith(step({}, [aPod("web-0")]))).toEqual(["web-r2", "c"]);
  });

  test("ordinals below the partition are made of the template from which it began", () => {
    expect(madeWith(step(partition, [aPod("web-1", "Running", updated)]))).toEqual(["web-r1", "before"]);
    expect(madeWith(step(partition, [aPod("web-0")]))).toEqual(["web-r2", "c"]);
  });

  test("with OnDelete nothing goes, and what is made is new", () => {
    const onDelete = { updateStrategy: { type: "OnDelete" } };
    expect(nameOf(step(onDelete, both))).not.toMatch(/^deletePod/);
    expect(madeWith(step(onDelete, [aPod("web-1")]))).toEqual(["web-r2", "c"]);
  });

  test("both revisions are counted", () => {
    const half = [aPod("web-0"), aPod("web-1", "Running", { ...updated, ...going })];
    expect(step({}, half)).toMatchObject({
      step: "reportStatus",
      status: {
        currentRevision: "web-r1",
        updateRevision: "web-r2",
        currentReplicas: 1,
        updatedReplicas: 0,
        readyReplicas: 1,
      },
    });
    const split = [aPod("web-0"), aPod("web-1", "Running", updated)];
    expect(step(partition, split)).toMatchObject({
      status: { currentRevision: "web-r1", currentReplicas: 1, updatedReplicas: 1 },
    });
  });

  test("the new one is the current one once all pods have it and are ready", () => {
    const all = [aPod("web-0", "Running", updated), aPod("web-1", "Running", updated)];
    const done = { currentRevision: "web-r2", currentReplicas: 2, updatedReplicas: 2 };
    expect(step({}, all)).toMatchObject({ step: "reportStatus", status: done });
    // It is never the current one with OnDelete.
    expect(step({ updateStrategy: { type: "OnDelete" } }, all)).toMatchObject({
      status: { currentRevision: "web-r1", currentReplicas: 0, updatedReplicas: 2 },
    });
  });
});

test("a pod is available after minReadySeconds, when the set is looked at again", () => {
  const ready = { type: "Ready", status: "True", lastTransitionTime: "1970-01-01T00:00:00Z" };
  const pod = { ...aPod("web-0"), status: { phase: "Running", conditions: [ready] } };
  const set = aSet({ replicas: 1, minReadySeconds: 10 });
  const at = (ms: number) => decideStatefulSetStep(observed(set, { pods: [pod], now: new Date(ms) }));
  expect(at(4000)).toMatchObject({ status: { readyReplicas: 1, availableReplicas: 0 }, nextMs: 6000 });
  expect(at(10_000)).toMatchObject({ status: { availableReplicas: 1 }, nextMs: undefined });
});
