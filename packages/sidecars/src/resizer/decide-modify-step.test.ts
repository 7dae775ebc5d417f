import type { PersistentVolume, PersistentVolumeClaim, Stored, VolumeAttributesClass } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { modifySecretNameAnnotation, modifySecretNamespaceAnnotation } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { decideModifyStep, type ModifyStep } from "./decide-modify-step.ts";
import type { ModifyProgress, ObservedModify } from "./observed-modify.ts";

const decide = pureDecision(decideModifyStep);
const driver = { name: "ebs.csi.aws.com" };
const time = "2026-01-01T00:00:00Z";
const classes: Record<string, VolumeAttributesClass> = {
  gold: { driverName: driver.name, parameters: { iops: "9000" } },
  foreign: { driverName: "pd.csi.storage.gke.io" },
};

const claim = (wanted: string | undefined, status: object = {}) =>
  ({
    metadata: { name: "data", namespace: "default", uid: "u-1", resourceVersion: "1" },
    spec: {
      volumeName: "pv-1",
      ...(wanted === undefined ? {} : { volumeAttributesClassName: wanted }),
    },
    status: { phase: "Bound", ...status },
  }) as Stored<PersistentVolumeClaim>;

const volume = (spec: object = {}, annotations: Record<string, string> = {}) =>
  ({
    metadata: { name: "pv-1", uid: "v-1", resourceVersion: "1", annotations },
    spec: {
      claimRef: { namespace: "default", name: "data", uid: "u-1" },
      csi: { driver: driver.name, volumeHandle: "vol-1" },
      ...spec,
    },
  }) as Stored<PersistentVolume>;

const observed = (over: Partial<ObservedModify> = {}): ObservedModify => ({
  claim: claim("gold"),
  volume: volume(),
  driver,
  attempt: {},
  classes,
  nowMs: 100,
  time,
  rules: { infeasibleRetryMs: 300, extraMetadata: false },
  progress: {},
  ...over,
});

const begun: ModifyProgress = {
  begun: { kind: "modify", className: "gold", parameters: { iops: "9000" }, begin: true },
};
const called: ModifyProgress = { ...begun, isModifyingEmitted: true };
const modified: ModifyProgress = { ...called, isModified: true };
const inProgress = claim("gold", {
  modifyVolumeStatus: { targetVolumeAttributesClassName: "gold", status: "InProgress" },
});
const secret = { [modifySecretNameAnnotation]: "s", [modifySecretNamespaceAnnotation]: "n" };
const refused = (how: object = {}): ModifyProgress => ({
  ...called,
  refusal: { message: "no", isInfeasible: false, isFinal: true, time, ...how },
});
const emitted = { isRemembered: true, isEmitted: true };
const canceled = claim(undefined, {
  modifyVolumeStatus: { targetVolumeAttributesClassName: "gold", status: "Infeasible" },
  conditions: [{ type: "ModifyVolumeError", status: "True" }],
});

describe("the step for the attributes of a claim's volume", () => {
  it.each<[string, Partial<ObservedModify>, ModifyStep["step"]]>([
    ["names no class", { claim: claim(undefined) }, "settle"],
    ["names an impossible one", { attempt: { infeasible: { request: "gold", untilMs: 300 } } }, "wait"],
    ["names a class that does not exist", { claim: claim("missing") }, "reportPending"],
    ["says so", { claim: claim("missing"), progress: { isReported: true } }, "emitPending"],
    [
      "said so before",
      {
        claim: claim("missing", {
          modifyVolumeStatus: { targetVolumeAttributesClassName: "missing", status: "Pending" },
        }),
      },
      "emitPending",
    ],
    ["names a class of another driver", { claim: claim("foreign") }, "rememberRefusal"],
    ["names none any more", { claim: canceled }, "reportCanceled"],
    ["names none any more, as it says", { claim: canceled, progress: { isReported: true } }, "emitCanceled"],
    ["names a class", {}, "storeIntent"],
    ["has begun in this pass", { progress: begun }, "emitModifying"],
    ["has begun before", { claim: inProgress }, "modifyVolume"],
    ["needs a secret", { progress: called, volume: volume({}, secret) }, "readSecret"],
    ["has its secret", { progress: { ...called, secrets: {} }, volume: volume({}, secret) }, "modifyVolume"],
    ["needs none", { progress: called }, "modifyVolume"],
    ["has the class", { progress: modified }, "storeClass"],
    [
      "has the class, and its volume says so",
      { progress: modified, volume: volume({ volumeAttributesClassName: "gold" }) },
      "reportModified",
    ],
    [
      "has the class, and its volume says so by now",
      { progress: { ...modified, isClassStored: true } },
      "reportModified",
    ],
    ["says so itself", { progress: { ...modified, isClassStored: true, isReported: true } }, "emitModified"],
    [
      "could not be stored",
      { progress: { ...modified, storeFailure: { error: new Error("no") } } },
      "emitNotStored",
    ],
    [
      "could not be stored, which was said",
      { progress: { ...modified, storeFailure: { error: new Error("no"), isEmitted: true } } },
      "fail",
    ],
    ["was refused", { progress: refused() }, "rememberRefusal"],
    ["was refused, which is remembered", { progress: refused({ isRemembered: true }) }, "emitRefused"],
    ["was refused, which was said", { progress: refused(emitted) }, "reportRefused"],
    ["was refused for now", { progress: refused({ ...emitted, isReported: true }) }, "fail"],
    [
      "was refused for good",
      { progress: refused({ ...emitted, isReported: true, isInfeasible: true }) },
      "wait",
    ],
  ])("of a claim that %s", (_, over, step) => expect(decide(observed(over)).step).toBe(step));

  it("names both drivers where the class is of another", () => {
    expect(decide(observed({ claim: claim("foreign") }))).toMatchObject({
      refusal: {
        message:
          'VolumeAttributesClass "foreign" is of driver pd.csi.storage.gke.io, the volume of driver ebs.csi.aws.com',
        isInfeasible: true,
      },
    });
  });

  it("says that the class may still be applied after an uncertain answer", () => {
    expect(decide(observed({ progress: refused({ isFinal: false, isRemembered: true }) }))).toEqual({
      step: "emitRefused",
      message: "no. Still modifying to VAC gold",
    });
  });

  it.each([
    ["the parameters of the class", false, { iops: "9000" }],
    [
      "and the names of claim and volume",
      true,
      {
        iops: "9000",
        "csi.storage.k8s.io/pvc/name": "data",
        "csi.storage.k8s.io/pvc/namespace": "default",
        "csi.storage.k8s.io/pv/name": "pv-1",
      },
    ],
  ])("the driver gets %s", (_, extraMetadata, mutableParameters) => {
    const rules = { ...observed().rules, extraMetadata };
    expect(decide(observed({ rules, progress: called }))).toEqual({
      step: "modifyVolume",
      parameters: { volumeId: "vol-1", mutableParameters },
    });
  });
});
