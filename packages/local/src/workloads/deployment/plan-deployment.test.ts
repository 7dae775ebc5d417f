/** How a Deployment moves from one ReplicaSet to the next, as tables. */
import type { Deployment, ReplicaSet, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { deploymentReport } from "./deployment-status.ts";
import {
  amountOf,
  beyondHistory,
  nextScaling,
  type Rollout,
  rollingLimits,
  rolloutOf,
} from "./plan-deployment.ts";

const now = new Date("2026-01-01T01:00:00Z");
const aDeployment = (spec: object, more: object = {}): Stored<Deployment> =>
  ({
    metadata: { name: "d", uid: "d", generation: 1 },
    spec: { replicas: 4, ...spec },
    ...more,
  }) as unknown as Stored<Deployment>;
const aSet = (name: string, replicas: number, available = replicas, more: object = {}): Stored<ReplicaSet> =>
  ({
    metadata: { name, uid: name, ...more },
    spec: { replicas },
    status: { replicas, readyReplicas: available, availableReplicas: available },
  }) as unknown as Stored<ReplicaSet>;
const rolling = (maxSurge: number | string, maxUnavailable: number | string) => ({
  strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge, maxUnavailable } },
});

describe("nextScaling", () => {
  const table: readonly [
    string,
    object,
    ReplicaSet | undefined,
    readonly ReplicaSet[],
    string | undefined,
  ][] = [
    ["nothing is to do when all have the template", {}, aSet("new", 4), [], undefined],
    [
      "the new one grows into what it may go beyond",
      rolling(1, 0),
      aSet("new", 0),
      [aSet("old", 4)],
      "new 1",
    ],
    [
      "the old one shrinks by what is available beyond",
      rolling(1, 0),
      aSet("new", 1),
      [aSet("old", 4)],
      "old 3",
    ],
    [
      "but not for new pods that are not available",
      rolling(1, 0),
      aSet("new", 1, 0),
      [aSet("old", 4)],
      undefined,
    ],
    [
      "the old one shrinks first without room beyond",
      rolling(0, 1),
      aSet("new", 0),
      [aSet("old", 4)],
      "old 3",
    ],
    ["old pods that serve nothing go first", rolling(1, 0), aSet("new", 1), [aSet("old", 4, 2)], "old 3"],
    ["the oldest shrinks first", rolling(1, 0), aSet("new", 1), [aSet("a", 2), aSet("b", 2)], "a 1"],
    ["a smaller number of replicas", {}, aSet("new", 6), [], "new 4"],
    ["a larger number of replicas", {}, aSet("new", 2), [], "new 4"],
    ["Recreate: the old go", { strategy: { type: "Recreate" } }, aSet("new", 0), [aSet("old", 4)], "old 0"],
    [
      "Recreate: then the new come",
      { strategy: { type: "Recreate" } },
      aSet("new", 0),
      [aSet("old", 0)],
      "new 4",
    ],
    ["paused: no rollout", { paused: true, ...rolling(1, 1) }, undefined, [aSet("old", 4)], undefined],
    [
      "paused: it is scaled nevertheless",
      { paused: true, replicas: 6 },
      undefined,
      [aSet("old", 4)],
      "old 6",
    ],
  ];
  it.each(table)("%s", (_name, spec, current, old, expected) => {
    const rollout = { deployment: aDeployment(spec), current, old } as Rollout;
    const next = nextScaling(rollout, []);
    expect(next === undefined ? undefined : `${next.set.metadata.name} ${next.replicas}`).toBe(expected);
  });
  it("Recreate waits for old pods that may run", () => {
    const deployment = aDeployment({ strategy: { type: "Recreate" } });
    const rollout: Rollout = { deployment, current: aSet("new", 0), old: [aSet("old", 0)] };
    expect(nextScaling(rollout, [{ metadata: { name: "p" } }])).toBeUndefined();
  });
});

describe("the limits of a rolling update", () => {
  it.each([
    [rolling("25%", "25%"), 4, { surge: 1, unavailable: 1 }],
    [rolling("25%", "25%"), 3, { surge: 1, unavailable: 1 - 1 }],
    [rolling("50%", "50%"), 3, { surge: 2, unavailable: 1 }],
    [rolling(0, "10%"), 3, { surge: 0, unavailable: 1 }],
    [rolling(2, 9), 3, { surge: 2, unavailable: 3 }],
  ])("%j of %i", (spec, replicas, expected) => {
    expect(rollingLimits(aDeployment({ ...spec, replicas }))).toEqual(expected);
  });
  it("a number stands for itself", () => expect(amountOf(3, 10, Math.floor)).toBe(3));
});

it("the current ReplicaSet is that with the template, whatever the order of its members", () => {
  const template = { metadata: { labels: { app: "a" } }, spec: { containers: [{ name: "c", image: "i" }] } };
  const labelled = {
    spec: { containers: [{ image: "i", name: "c" }] },
    metadata: { labels: { "pod-template-hash": "x", app: "a" } },
  };
  const same = { ...aSet("same", 1), spec: { selector: {}, template: labelled } } as Stored<ReplicaSet>;
  const { current, old } = rolloutOf(aDeployment({ template }), [aSet("other", 1), same]);
  expect(current).toBe(same);
  expect(old).toHaveLength(1);
});

it("of ReplicaSets beyond the history the earliest revisions without pods go", () => {
  const revision = (n: number) => ({ annotations: { "deployment.kubernetes.io/revision": `${n}` } });
  const old = [aSet("a", 0, 0, revision(2)), aSet("b", 0, 0, revision(1)), aSet("c", 1, 1, revision(3))];
  const rollout: Rollout = {
    deployment: aDeployment({ revisionHistoryLimit: 1 }),
    current: aSet("n", 4),
    old,
  };
  expect(beyondHistory(rollout).map(({ metadata }) => metadata.name)).toEqual(["b", "a"]);
});

describe("the condition Progressing", () => {
  const reasonOf = (rollout: Rollout, at = now) =>
    deploymentReport(rollout, at).status.conditions?.find(({ type }) => type === "Progressing")?.reason;
  it("says that the rollout is complete", () => {
    expect(reasonOf({ deployment: aDeployment({}), current: aSet("n", 4), old: [] })).toBe(
      "NewReplicaSetAvailable",
    );
  });
  it("fails once nothing has moved for the deadline, and is looked at then", () => {
    const started = deploymentReport(
      { deployment: aDeployment({ progressDeadlineSeconds: 60 }), current: aSet("n", 4, 1), old: [] },
      now,
    );
    expect(started.nextMs).toBe(60_000);
    const deployment = aDeployment({ progressDeadlineSeconds: 60 }, { status: started.status });
    const rollout: Rollout = { deployment, current: aSet("n", 4, 1), old: [] };
    expect(reasonOf(rollout, new Date(now.getTime() + 59_000))).toBe("ReplicaSetUpdated");
    expect(reasonOf(rollout, new Date(now.getTime() + 60_000))).toBe("ProgressDeadlineExceeded");
    const moved: Rollout = { deployment, current: aSet("n", 4, 2), old: [] };
    expect(reasonOf(moved, new Date(now.getTime() + 60_000))).toBe("ReplicaSetUpdated");
  });
});
