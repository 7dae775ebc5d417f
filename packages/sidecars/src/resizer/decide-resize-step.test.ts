import { CsiCallError, type GrpcCode } from "@longshore/csi";
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { preResizeCapacityAnnotation } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { decideResizeStep, type ResizeStep } from "./decide-resize-step.ts";
import type { ObservedResize, ResizeProgress } from "./observed-resize.ts";

const decide = pureDecision(decideResizeStep);
const driver = { name: "ebs.csi.aws.com", inTreeName: "kubernetes.io/aws-ebs" };
const time = "2026-01-01T00:00:00Z";

const claim = (status: object = {}, request = "2Gi") =>
  ({
    metadata: { name: "data", namespace: "default", uid: "u-1", resourceVersion: "1" },
    spec: { resources: { requests: { storage: request } }, volumeName: "pv-1" },
    status: { phase: "Bound", capacity: { storage: "1Gi" }, ...status },
  }) as Stored<PersistentVolumeClaim>;

const volume = (spec: object = {}, annotations: Record<string, string> = {}) =>
  ({
    metadata: { name: "pv-1", uid: "v-1", resourceVersion: "1", annotations },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      claimRef: { namespace: "default", name: "data", uid: "u-1" },
      csi: { driver: driver.name, volumeHandle: "vol-1" },
      ...spec,
    },
  }) as Stored<PersistentVolume>;

const observed = (over: Partial<ObservedResize> = {}): ObservedResize => ({
  claim: claim(),
  volume: volume(),
  driver,
  attempt: {},
  trivial: false,
  isInUse: false,
  nowMs: 100,
  time,
  rules: { singleNodeMultiWriter: false, notesOldSize: false, followsPods: true, infeasibleRetryMs: 300 },
  progress: {},
  ...over,
});

const noting = { ...observed().rules, notesOldSize: true };
const begun: ResizeProgress = { begunSize: "2Gi" };
const called: ResizeProgress = { ...begun, isResizingEmitted: true };
const grown = (capacity = "2Gi", nodeExpansionRequired = true): ResizeProgress => ({
  ...called,
  grown: { capacity, nodeExpansionRequired, time },
});
const withSecret = volume({
  csi: {
    driver: driver.name,
    volumeHandle: "vol-1",
    controllerExpandSecretRef: { name: "s", namespace: "n" },
  },
});
const failed = (code: GrpcCode, how: object = {}): ResizeProgress => ({
  ...called,
  refusal: {
    error: new CsiCallError("ControllerExpandVolume", code, "no", { answered: true }),
    time,
    ...how,
  },
});
const emitted = { isRemembered: true, isEmitted: true };
const keeps = claim({
  allocatedResources: { storage: "2Gi" },
  allocatedResourceStatuses: { storage: "ControllerResizeInProgress" },
});

describe("the step for the size of a claim", () => {
  it.each<[string, Partial<ObservedResize>, ResizeStep["step"]]>([
    ["has what it asks for", { claim: claim({}, "1Gi") }, "settle"],
    ["is impossible for now", { attempt: { infeasible: { request: "2Gi", untilMs: 300 } } }, "wait"],
    ["was refused in use: pods are followed first", { attempt: { inUse: true } }, "followPods"],
    [
      "not without that knowledge",
      { attempt: { inUse: true }, rules: { ...observed().rules, followsPods: false } },
      "storeIntent",
    ],
    [
      "is in use",
      { attempt: { inUse: true }, isInUse: true, progress: { arePodsFollowed: true } },
      "emitInUse",
    ],
    [
      "is in use, which was said",
      { attempt: { inUse: true }, isInUse: true, progress: { arePodsFollowed: true, isInUseEmitted: true } },
      "wait",
    ],
    ["is in use no more", { attempt: { inUse: true }, progress: { arePodsFollowed: true } }, "storeIntent"],
    [
      "has grown, with a note",
      {
        claim: claim({}, "1Gi"),
        volume: volume({}, { [preResizeCapacityAnnotation]: "1Gi" }),
        rules: noting,
      },
      "removeOldSize",
    ],
    [
      "has grown, with a note of another resizer",
      { claim: claim({}, "1Gi"), volume: volume({}, { [preResizeCapacityAnnotation]: "1Gi" }) },
      "settle",
    ],
    ["asks for more", {}, "storeIntent"],
    ["is begun", { claim: keeps }, "emitResizing"],
    [
      "is begun, on a server that keeps no more than the condition",
      { claim: claim({ conditions: [{ type: "Resizing", status: "True" }] }), attempt: { classic: true } },
      "emitResizing",
    ],
    ["is begun in this pass", { progress: begun }, "emitResizing"],
    ["needs a secret", { progress: called, volume: withSecret }, "readSecret"],
    ["has its secret", { progress: { ...called, secrets: {} }, volume: withSecret }, "expandVolume"],
    ["needs none", { progress: called }, "expandVolume"],
    ["grows on its node only", { progress: called, trivial: true }, "leaveToNode"],
    [
      "has no access mode that CSI has",
      { progress: called, volume: volume({ accessModes: [] }) },
      "rememberRefusal",
    ],
    ["has grown", { progress: grown() }, "storeCapacity"],
    [
      "has grown already",
      { progress: grown(), volume: volume({ capacity: { storage: "2Gi" } }) },
      "reportNodePending",
    ],
    [
      "has grown already, without the note",
      { progress: grown(), volume: volume({ capacity: { storage: "2Gi" } }), rules: noting },
      "storeCapacity",
    ],
    ["waits for its node", { progress: { ...grown(), isCapacityStored: true } }, "reportNodePending"],
    [
      "waits for its node, as its status says",
      { progress: { ...grown(), isCapacityStored: true, isReported: true } },
      "emitNodePending",
    ],
    ["needs no node", { progress: { ...grown("2Gi", false), isCapacityStored: true } }, "reportFinished"],
    [
      "needs no node, as its status says",
      { progress: { ...grown("2Gi", false), isCapacityStored: true, isReported: true } },
      "emitFinished",
    ],
    [
      "is done",
      { progress: { ...grown(), isCapacityStored: true, isReported: true, isEndEmitted: true } },
      "settle",
    ],
    [
      "could not be stored",
      { progress: { ...grown(), storeFailure: { error: new Error("no") } } },
      "emitNotStored",
    ],
    [
      "could not be stored, which was said",
      { progress: { ...grown(), storeFailure: { error: new Error("no"), isEmitted: true } } },
      "fail",
    ],
    ["was refused", { progress: failed("INTERNAL") }, "rememberRefusal"],
    [
      "was refused, which is remembered",
      { progress: failed("INTERNAL", { isRemembered: true }) },
      "emitRefused",
    ],
    ["was refused for now", { claim: keeps, progress: failed("INTERNAL", emitted) }, "reportRefused"],
    [
      "was refused for now, which is reported",
      { claim: keeps, progress: failed("INTERNAL", { ...emitted, isReported: true }) },
      "fail",
    ],
    ["was refused, on a server that keeps nothing of it", { progress: failed("INTERNAL", emitted) }, "fail"],
    ["may be under way", { claim: keeps, progress: failed("UNAVAILABLE", emitted) }, "fail"],
    [
      "can never be had",
      { claim: keeps, progress: failed("OUT_OF_RANGE", { ...emitted, isReported: true }) },
      "wait",
    ],
  ])("of a claim that %s", (_, over, step) => expect(decide(observed(over)).step).toBe(step));

  it("keeps to the size that was stored, whatever the claim asks for by then", () => {
    const step = decide(observed({ claim: claim({}, "9Gi"), progress: called }));
    expect(step).toMatchObject({ parameters: { capacityRange: { requiredBytes: 2n * 1024n ** 3n } } });
  });

  it("notes the size before, where the node has its part to do", () => {
    const step = decide(observed({ progress: grown(), rules: noting }));
    expect(step).toMatchObject({ change: { capacity: "2Gi", oldSize: "1Gi" } });
  });

  it("carries no secret value", () => {
    const progress = { ...called, secrets: { token: "hidden" } };
    const step = decide(observed({ volume: withSecret, progress }));
    expect(
      JSON.stringify(step, (_, value) => (typeof value === "bigint" ? `${value}` : value)),
    ).not.toContain("hidden");
  });
});
