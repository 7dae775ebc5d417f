import type { CSINode, Node, Pod, PodDisruptionBudget, Stored } from "@longshore/kube";
import { expect, it } from "vitest";
import type { CrossingResult } from "./crossing.ts";
import type { CrossingObservation } from "./crossing-observation.ts";
import { crossingPlanOf, planCrossing } from "./crossing-plan.ts";
import { crossingSubject } from "./crossing-subject.ts";
import { readPlan } from "./plan-document.ts";
import { staleParts } from "./plan-drift.ts";
import { aCluster, cross } from "./testing/fake-cluster.ts";

const subject = crossingSubject("aws-ebs");
const readyNode = (name: string) =>
  ({ metadata: { name }, status: { conditions: [{ type: "Ready", status: "True" }] } }) as Stored<Node>;
const csiNode = (name: string, plugins = "") =>
  ({
    metadata: { name, annotations: { "storage.alpha.kubernetes.io/migrated-plugins": plugins } },
    spec: { drivers: [{ name: subject.driverName, nodeID: "i" }] },
  }) as unknown as Stored<CSINode>;
const pod = (name: string, kind = "StatefulSet") =>
  ({
    metadata: { namespace: "default", name, labels: {}, ownerReferences: [{ kind, controller: true }] },
    spec: { nodeName: "n2" },
    status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
  }) as unknown as Stored<Pod>;
const seen = (over: Partial<CrossingObservation> = {}): CrossingObservation => ({
  now: new Date("2026-01-01T12:00:00Z"),
  budgets: [],
  attachments: [],
  events: [],
  leases: [],
  nodes: [readyNode("n2"), readyNode("n1"), readyNode("n3")],
  csiNodes: [csiNode("n1"), csiNode("n2"), csiNode("n3", subject.inTreeName)],
  pods: [pod("writer-0"), pod("agent", "DaemonSet")],
  volumes: [],
  claims: [],
  ...over,
});
const planned = (over: Partial<CrossingObservation> = {}, direction: "migrate" | "rollback" = "migrate") =>
  crossingPlanOf({ subject, direction }, seen(over), "cluster-a");
const steps = (plan: ReturnType<typeof planned>) =>
  plan.steps.map((s) => [s.nodeName ?? "", s.name].join(" "));

// Source: docs/behaviour/migration-controllers.md C1.
it("has the control plane first and then the nodes that have not crossed, with what each step changes", () => {
  const plan = planned();
  const each = ["cordon", "drain", "volumes gone", "flip", "CSINode agrees", "uncordon"];
  expect(steps(plan)).toEqual([
    " control plane on",
    ...each.map((name) => `n1 ${name}`),
    ...each.map((name) => `n2 ${name}`),
  ]);
  expect(plan.steps[8]?.changes).toEqual(["Pod default/writer-0: evicted"]);
  expect(plan.steps[10]?.changes).toEqual([
    "the agent of Node n2: feature gate CSIMigration=true, and a restart",
    "the agent of Node n2: feature gate CSIMigrationAWS=true, and a restart",
  ]);
});

it("goes back the other way round", () => {
  expect(steps(planned({}, "rollback"))).toEqual([
    "n3 cordon",
    "n3 drain",
    "n3 volumes gone",
    "n3 flip",
    "n3 CSINode agrees",
    "n3 uncordon",
    " control plane off",
    " objects clean",
  ]);
});

it("has the budgets that block, as the preflight finds them", () => {
  const budget = {
    metadata: { namespace: "default", name: "all", generation: 1 },
    spec: { selector: {} },
    status: {
      observedGeneration: 1,
      disruptionsAllowed: 0,
      desiredHealthy: 1,
      expectedPods: 1,
      currentHealthy: 1,
    },
  } as unknown as Stored<PodDisruptionBudget>;
  const objects = planned({ budgets: [budget] }).findings.map((f) => [f.severity, f.object]);
  expect(objects).toContainEqual(["blocker", "PodDisruptionBudget default/all"]);
});

it("is stale where steps, changes or findings differ", () => {
  expect(staleParts(planned(), planned())).toEqual([]);
  const later = planned({
    pods: [pod("writer-1")],
    csiNodes: [csiNode("n2"), csiNode("n1", subject.inTreeName), csiNode("n3", subject.inTreeName)],
  });
  const parts = staleParts(planned(), later);
  expect(parts).toContain("no longer: step n1: drain");
  expect(parts).toContain("no longer: in step n2: drain: Pod default/writer-0: evicted");
  expect(parts).toContain("new: in step n2: drain: Pod default/writer-1: evicted");
});

it("is not stale where a run of it has carried nodes across", () => {
  const crossed = {
    csiNodes: [csiNode("n2"), csiNode("n1", subject.inTreeName), csiNode("n3", subject.inTreeName)],
  };
  const done = planned({ pods: [] });
  expect(staleParts(done, planned({ pods: [], ...crossed }))).toContain("no longer: step n1: flip");
  expect(staleParts(done, planned({ pods: [], ...crossed }), ["n1"])).toEqual([]);
  // A node that was deleted and made again is to cross, whatever the journal says.
  expect(staleParts(planned({ pods: [], ...crossed }), done, ["n1"])).toContain("new: step n1: flip");
});

it("is refused in another cluster and for another direction", () => {
  const other = { ...planned(), clusterId: "cluster-b" };
  expect(() => staleParts(other, planned())).toThrow('the plan\'s clusterId is "cluster-b"');
  expect(() => staleParts(planned({}, "rollback"), planned())).toThrow("direction");
});

it("is read from what was written, and nothing else is", () => {
  const written = JSON.parse(JSON.stringify(planned()));
  expect(readPlan(written)).toEqual(planned());
  for (const wrong of [
    undefined,
    "text",
    { ...written, version: 2 },
    { ...written, clusterId: 1 },
    { ...written, steps: [{ name: "drain" }] },
    { ...written, findings: [null] },
  ]) {
    expect(() => readPlan(wrong)).toThrow("it is not a plan of version 1");
  }
});

it.each(["migrate", "rollback"] as const)("has the steps that a run of %s then takes", async (direction) => {
  const { cluster, kube } = aCluster(() => {});
  cluster.addNode("n2");
  const system = { metadata: { name: "kube-system", uid: "c" } };
  cluster.objects.set("namespaces", [system]);
  const show = (isMigrated: boolean, of: (name: string) => boolean) => {
    const csiNodes = cluster.objects.get("csinodes") ?? [];
    const changed = csiNodes.map((each) => {
      if (!of(each.metadata?.name ?? "")) return each;
      const annotations = {
        "storage.alpha.kubernetes.io/migrated-plugins": isMigrated ? subject.inTreeName : "",
      };
      return { ...each, metadata: { ...each.metadata, annotations } };
    });
    cluster.objects.set("csinodes", changed);
  };
  show(direction === "rollback", () => true);
  const now = new Date("2026-01-01T12:00:00Z");
  const { signal } = new AbortController();
  const plan = await planCrossing({ clock: { now: () => now }, kube }, { subject, direction }, signal);
  const onFlip = (node: string) => show(direction === "migrate", (name) => name === node);
  const { steps: taken } = (await cross(kube, { direction, onFlip })) as CrossingResult;
  const named = plan.steps.map(({ nodeName, name }) =>
    nodeName === undefined ? name : `${nodeName}: ${name}`,
  );
  expect(["preflight", ...named]).toEqual(taken.map(({ name }) => name));
});
