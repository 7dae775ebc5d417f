import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { decideInlineStep, type InlineIntent } from "./decide-inline-step.ts";
import type { InlineObservation, PlannedTemplate, TemplateWorkload } from "./inline-types.ts";

const before = { name: "data", awsElasticBlockStore: { volumeID: "vol-1" } };
const after = { name: "data", persistentVolumeClaim: { claimName: "web-data" } };

const planned: PlannedTemplate = {
  workload: { kind: "Deployment", namespace: "shop", name: "web", uid: "u", replicas: 1 },
  volumes: [
    {
      name: "data",
      plugin: "kubernetes.io/aws-ebs",
      driver: "ebs.csi.aws.com",
      before,
      after,
      volume: {
        metadata: { name: "pv" },
        spec: { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" } },
      },
      claim: { metadata: { namespace: "shop", name: "web-data" } },
    },
  ],
  scaleDown: true,
  owners: [],
  inUseBy: [],
};

function volume(policy = "Retain", metadata: object = {}, handle = "vol-1") {
  return {
    metadata: { name: "pv", uid: "pv-uid", ...metadata },
    spec: {
      csi: { driver: "ebs.csi.aws.com", volumeHandle: handle },
      claimRef: { namespace: "shop", name: "web-data", uid: "claim-uid" },
      persistentVolumeReclaimPolicy: policy,
    },
    status: { phase: "Bound" },
  } as unknown as Stored<PersistentVolume>;
}

function claim(phase = "Bound", metadata: object = {}) {
  return {
    metadata: { namespace: "shop", name: "web-data", uid: "claim-uid", ...metadata },
    spec: { volumeName: "pv" },
    status: { phase },
  } as unknown as Stored<PersistentVolumeClaim>;
}

function workload(form: object, replicas: number, observedGeneration = 2, uid = "u") {
  return {
    metadata: { namespace: "shop", name: "web", uid, generation: 2 },
    spec: { replicas, template: { spec: { volumes: [form] } } },
    status: { observedGeneration },
  } as unknown as Stored<TemplateWorkload>;
}

const seen = (changes: Partial<InlineObservation>): InlineObservation => ({
  workload: workload(before, 1),
  volumes: [volume()],
  claims: [claim()],
  users: [],
  claimUsers: [],
  ...changes,
});

function step(changes: Partial<InlineObservation>, intent: Partial<InlineIntent> = {}): string {
  const whole: InlineIntent = {
    planned,
    direction: "convert",
    isScaledDown: false,
    claimDeletionBegun: false,
    volumeDeletionBegun: false,
    ...intent,
  };
  const decision = decideInlineStep(whole, seen(changes));
  if (decision.kind === "step") return decision.step;
  return decision.kind === "done" ? "done" : `${decision.refusal.code}: ${decision.refusal.reason}`;
}

describe("to claims", () => {
  const quiet = { workload: workload(before, 0) };
  const changed = { workload: workload(after, 0) };
  it.each<readonly [string, Partial<InlineObservation>, Partial<InlineIntent>, string]>([
    ["nothing is there", { volumes: [undefined], claims: [undefined] }, {}, "create volumes"],
    ["the volume is there", { claims: [undefined] }, {}, "create claims"],
    ["the claim is not bound", { claims: [claim("Pending")] }, {}, "await claims bound"],
    ["the claim is bound, and pods run", { users: ["Pod shop/web-1"] }, {}, "scale down"],
    ["a pod is ending", { ...quiet, users: ["Pod shop/web-1"] }, {}, "wait for quiet"],
    ["it may not be scaled", {}, { planned: { ...planned, scaleDown: false } }, "wait for quiet"],
    ["the controller has not seen the 0", { workload: workload(before, 0, 1) }, {}, "wait for quiet"],
    ["the disk is quiet", quiet, {}, "change template"],
    [
      "the controller has not seen the template",
      { workload: workload(after, 0, 1) },
      { isScaledDown: true },
      "await template",
    ],
    ["the controller has seen it", changed, { isScaledDown: true }, "scale up"],
    ["another has scaled it to 0", changed, {}, "done"],
    ["the replicas are back", { workload: workload(after, 1), users: ["Pod shop/web-2"] }, {}, "done"],
  ])("%s", (_words, changes, intent, expected) => {
    expect(step(changes, intent)).toBe(expected);
  });
});

describe("back to disks", () => {
  const undo = { direction: "undo", isScaledDown: true } as const;
  const back = { workload: workload(before, 0) };
  const deleting = { deletionTimestamp: "2026-01-01T00:00:00Z" };
  it.each<readonly [string, Partial<InlineObservation>, Partial<InlineIntent>, string]>([
    [
      "pods run with the claim",
      { workload: workload(after, 1), users: ["Pod shop/web-1"] },
      {},
      "scale down",
    ],
    ["the disk is quiet", { workload: workload(after, 0) }, {}, "change template"],
    ["the policy is Delete", { ...back, volumes: [volume("Delete")] }, {}, "retain volumes"],
    ["another pod uses the claim", { ...back, claimUsers: ["Pod shop/other"] }, {}, "wait for quiet"],
    ["nothing uses the claim", back, {}, "delete claims"],
    [
      "the claim is on its way",
      { ...back, claims: [claim("Bound", deleting)] },
      { claimDeletionBegun: true },
      "await claims gone",
    ],
    ["the claim is gone", { ...back, claims: [undefined] }, {}, "delete volumes"],
    [
      "the policy was set to Delete meanwhile",
      { ...back, claims: [undefined], volumes: [volume("Delete")] },
      {},
      "retain volumes",
    ],
    ["nothing is left", { ...back, claims: [undefined], volumes: [undefined] }, {}, "scale up"],
  ])("%s", (_words, changes, intent, expected) => {
    expect(step(changes, { ...undo, ...intent })).toBe(expected);
  });

  it("leaves the pods of a template that was not changed yet", () => {
    const running = { workload: workload(before, 1), users: ["Pod shop/web-1"] };
    expect(step(running, { direction: "undo" })).toBe("delete claims");
  });
});

describe("what it did not make", () => {
  it.each<readonly [string, Partial<InlineObservation>, RegExp]>([
    ["the workload is gone", { workload: undefined }, /changed-by-others: it is gone/],
    ["another workload", { workload: workload(before, 1, 2, "x") }, /it is another one than the plan names/],
    [
      "another disk in the template",
      { workload: workload({ name: "data", awsElasticBlockStore: { volumeID: "vol-2" } }, 1) },
      /it names neither the disk nor the claim/,
    ],
    [
      "a volume of another disk",
      { volumes: [volume("Retain", {}, "vol-2")] },
      /name-taken: a volume of that/,
    ],
    [
      "a claim of another volume",
      { claims: [{ ...claim(), spec: { volumeName: "other" } } as Stored<PersistentVolumeClaim>] },
      /name-taken: a claim of that name is for other/,
    ],
    [
      "a claim that goes",
      { claims: [claim("Bound", { deletionTimestamp: "2026-01-01T00:00:00Z" })] },
      /claim-deleting/,
    ],
  ])("%s: nothing is done", (_words, changes, expected) => {
    expect(step(changes)).toMatch(expected);
  });
});
