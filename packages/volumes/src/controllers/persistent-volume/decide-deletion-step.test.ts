/** When the disk of a volume is deleted (docs/behaviour/controllers.md B5, docs/contract.md C3), as rows of a table. */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { DeletedVolumeInUseError } from "../../framework/controller-errors.ts";
import { type DeletionObservation, decideDeletionStep } from "./decide-deletion-step.ts";

const decide = pureDecision(decideDeletionStep);

interface Fields {
  readonly phase?: string;
  readonly policy?: string;
  readonly ref?: object | null;
  readonly metadata?: object;
  readonly message?: string;
}

function volume({ phase = "Released", policy = "Delete", ref, metadata, message }: Fields = {}) {
  const claimRef = ref === undefined ? { name: "a", namespace: "default", uid: "claim-uid" } : ref;
  return {
    metadata: { name: "v", uid: "volume-uid", resourceVersion: "1", ...metadata },
    spec: { persistentVolumeReclaimPolicy: policy, ...(claimRef === null ? {} : { claimRef }) },
    status: { phase, ...(message === undefined ? {} : { message }) },
  } as Stored<PersistentVolume>;
}

const claim = (uid: string, volumeName?: string) =>
  ({
    metadata: { name: "a", namespace: "default", uid, resourceVersion: "1" },
    spec: volumeName === undefined ? {} : { volumeName },
  }) as Stored<PersistentVolumeClaim>;

function observed(given: Partial<DeletionObservation> = {}): DeletionObservation {
  return { volume: volume(), claim: undefined, isExternal: false, waitMs: 0, ...given };
}

const finalizer = "kubernetes.io/pv-controller";
const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };

const handedBack = volume({
  metadata: {
    ...deleted,
    finalizers: ["external-provisioner.volume.kubernetes.io/finalizer"],
    annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" },
  },
});

it.each<[string, object, object]>([
  ["the volume goes", {}, { step: "deleteVolume" }],
  ["the finalizer goes last", { ...deleted, finalizers: [finalizer] }, { step: "removeFinalizer" }],
  ["of others it knows nothing", { ...deleted, finalizers: ["example.dev/x"] }, { step: "settle" }],
])("the disk is deleted: %s", (_name, metadata, step) => {
  expect(decide(observed({ volume: volume({ metadata }), isDeleted: true }))).toEqual(step);
});

it.each<[string, Partial<DeletionObservation>]>([
  ["released, its claim gone", {}],
  ["failed in an earlier deletion", { volume: volume({ phase: "Failed" }) }],
  ["another claim has the name now", { claim: claim("another") }],
  ["its claim has another volume", { claim: claim("claim-uid", "w") }],
  [
    "being deleted, and kept for its disk",
    { volume: volume({ metadata: { ...deleted, finalizers: [finalizer] } }) },
  ],
  ["being deleted, and kept by the finalizer of a provisioner that had it", { volume: handedBack }],
])("deleted: %s", (_name, given) => {
  expect(decide(observed(given))).toEqual({ step: "deleteDisk" });
});

it.each<[string, Partial<DeletionObservation>]>([
  ["its claim is there and names no volume yet", { claim: claim("claim-uid") }],
  ["its claim is there and has it", { claim: claim("claim-uid", "v") }],
  ["no claimRef", { volume: volume({ ref: null }) }],
  ["a claimRef without a UID", { volume: volume({ ref: { name: "a" } }) }],
  ["policy Retain", { volume: volume({ policy: "Retain" }) }],
  ["policy Recycle", { volume: volume({ policy: "Recycle" }) }],
  ["phase Bound", { volume: volume({ phase: "Bound" }) }],
  ["phase Available", { volume: volume({ phase: "Available" }) }],
  ["being deleted", { volume: volume({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }) }],
  [
    "handed to an external provisioner",
    { volume: volume({ metadata: { annotations: { "pv.kubernetes.io/migrated-to": "x.csi" } } }) },
  ],
  ["made by an external provisioner", { isExternal: true }],
])("kept: %s", (_name, given) => {
  expect(decide(observed(given))).toEqual({ step: "settle" });
});

it("a failed deletion waits for its back-off", () => {
  expect(decide(observed({ waitMs: 300 }))).toEqual({ step: "wait", ms: 300 });
});

it("the object goes after its disk", () => {
  expect(decide(observed({ isDeleted: true }))).toEqual({ step: "deleteVolume" });
});

describe("the disk could not be deleted", () => {
  const error = new Error("quota");
  const failure = { error, retryInMs: 500 };
  const failed = volume({ phase: "Failed", message: "quota" });
  const inUse = { error: new DeletedVolumeInUseError("attached"), retryInMs: 500 };
  it.each<[string, Partial<DeletionObservation>, object]>([
    [
      "the volume is Failed",
      { failure },
      { step: "markFailed", volume: { status: { phase: "Failed", message: "quota" } } },
    ],
    [
      "with a new reason",
      { failure, volume: volume({ phase: "Failed", message: "older" }) },
      { step: "markFailed", volume: { status: { message: "quota" } } },
    ],
    [
      "reported",
      { failure, volume: failed },
      { step: "report", type: "Warning", reason: "VolumeFailedDelete", message: "quota" },
    ],
    ["and tried again", { failure, volume: failed, isReported: true }, { step: "retry", afterMs: 500 }],
    [
      "one that is in use has not failed",
      { failure: inUse },
      { step: "report", type: "Normal", reason: "VolumeDelete", message: "attached" },
    ],
    ["and is tried again", { failure: inUse, isReported: true }, { step: "retry", afterMs: 500 }],
  ])("%s", (_name, given, step) => {
    expect(decide(observed(given))).toMatchObject(step);
  });
});
