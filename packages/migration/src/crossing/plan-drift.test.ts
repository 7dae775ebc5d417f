import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it } from "vitest";
import { type CrossingPlan, planSchema, readPlan } from "./plan-document.ts";
import { planDrift } from "./plan-drift.ts";

const node = (name: string, uid = `uid-${name}`) => ({ name, uid, batch: 1 });
const plan = (over: Partial<CrossingPlan> = {}): CrossingPlan => ({
  version: 1,
  clusterId: "c",
  plugin: "kubernetes.io/aws-ebs",
  direction: "migrate",
  madeAt: "2026-01-01T12:00:00Z",
  maxUnavailable: 1,
  nodesRolledBy: "crossing",
  nodes: [node("n1"), node("n2")],
  steps: [
    { name: "control plane on", before: "b", changes: ["a gate"], after: "a", expectedSeconds: 60 },
    {
      name: "drain",
      nodeName: "n1",
      batch: 1,
      before: "b",
      changes: ["Pod d/p: evicted"],
      after: "a",
      expectedSeconds: 30,
    },
  ],
  expectedSeconds: 90,
  findings: [{ severity: "warning", object: "Node n1", reason: "it is cordoned", remedy: "uncordon it" }],
  ...over,
});
const uids = (...names: readonly string[]) => new Map(names.map((name) => [name, `uid-${name}`]));
const drift = (now: Partial<CrossingPlan>, known = uids("n1", "n2", "n3"), isBegun = false) =>
  planDrift(plan(), plan(now), known, isBegun);

it("is none where only pods and warnings are others", () => {
  const steps = plan().steps.map((step) => (step.name === "drain" ? { ...step, changes: [] } : step));
  expect(drift({ steps, findings: [] })).toEqual([]);
});

it("names the object and the field of what is no longer so", () => {
  expect(drift({ nodes: [node("n1")] }, uids("n1"))).toEqual([
    "Node n2: metadata.uid is uid-n2 in the plan, and there is no such node now",
  ]);
  expect(drift({}, new Map([...uids("n1"), ["n2", "another"]]))).toEqual([
    "Node n2: metadata.uid is uid-n2 in the plan, and another now",
  ]);
  expect(drift({ nodes: [node("n1"), node("n2"), node("n3")] })).toEqual([
    "Node n3: it is to cross, and is not in the plan",
  ]);
  expect(drift({ steps: [{ ...plan().steps[0], changes: ["another gate"] } as never] })).toEqual([
    'step control plane on: changes: "a gate" in the plan, and "another gate" now',
  ]);
});

it("a plan for another kind of platform is not run", () => {
  expect(drift({ nodesRolledBy: "platform" })).toEqual([
    "nodesRolledBy: crossing in the plan, and platform on this platform",
  ]);
});

it("a planned node that has crossed is one before the run has begun, and none after", () => {
  const now = { nodes: [node("n2")] };
  expect(drift(now)).toEqual([
    "CSINode n1: metadata.annotations: the node is to cross in the plan, and has crossed now",
  ]);
  expect(drift(now, uids("n1", "n2"), true)).toEqual([]);
});

it("a plan of another cluster is refused before all else", () => {
  expect(() => drift({ clusterId: "other" })).toThrow(expect.objectContaining({ name: "PlanError" }));
});

it("the schema accepts what is read, and nothing else", () => {
  const isValid = new Ajv2020({ allErrors: true }).compile(planSchema);
  expect(isValid(plan())).toBe(true);
  const { steps: _steps, ...withoutSteps } = plan();
  const wrong: readonly object[] = [
    withoutSteps,
    { ...plan(), version: 2 },
    { ...plan(), maxUnavailable: 0 },
    { ...plan(), direction: "up" },
    { ...plan(), nodes: [{ name: "n1" }] },
    { ...plan(), findings: [{ severity: "fatal", object: "o", reason: "r", remedy: "m" }] },
  ];
  for (const each of wrong) {
    expect(isValid(each)).toBe(false);
    expect(() => readPlan(each)).toThrow("it is not a plan of version 1 (field ");
  }
});
