/** Each rule of docs/behaviour/controllers.md B5 for volumes, as a row of a table. */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideVolumeStep, type VolumeObservation } from "./decide-volume-step.ts";

const decide = pureDecision(decideVolumeStep);
const provisioned = { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" };
const migratedTo = { "pv.kubernetes.io/migrated-to": "x.csi" };
const ref = { name: "a", namespace: "default", uid: "claim-uid" };

function volume(spec: object, phase = "Bound", metadata: object = {}, message?: string) {
  return {
    metadata: { name: "v", uid: "volume-uid", resourceVersion: "1", ...metadata },
    spec,
    status: { phase, ...(message === undefined ? {} : { message }) },
  } as Stored<PersistentVolume>;
}

function claim(spec: object) {
  const metadata = { name: "a", namespace: "default", uid: "claim-uid", resourceVersion: "1" };
  return { metadata, spec } as Stored<PersistentVolumeClaim>;
}

function observed(of: Stored<PersistentVolume>, given: Partial<VolumeObservation> = {}): VolumeObservation {
  return { volume: of, migrated: of, claim: undefined, ...given };
}

const settle = { step: "settle" };
const toPhase = (phase: string) => ({ step: "setPhase", volume: { status: { phase } } });
const released = (spec: object, metadata: object = {}) =>
  volume({ claimRef: ref, ...spec }, "Released", metadata);

it("the migration annotation comes first (B2)", () => {
  const migrated = volume({}, "Bound", { annotations: migratedTo });
  expect(decide(observed(volume({}), { migrated }))).toEqual({ step: "markMigration", volume: migrated });
});

describe("without a certain claim", () => {
  it.each([
    ["a new volume becomes Available", volume({}, "Pending"), toPhase("Available")],
    ["and rests", volume({}, "Available"), settle],
    [
      "so does one that names a claim only by name",
      volume({ claimRef: { name: "a" } }, "Pending"),
      toPhase("Available"),
    ],
    ["a message of an older phase goes", volume({}, "Available", {}, "old"), toPhase("Available")],
  ])("%s", (_name, of, step) => {
    expect(decide(observed(of))).toMatchObject(step);
  });
});

describe("with a claim", () => {
  const bound = volume({ claimRef: ref }, "Available");
  const byController = { annotations: { "pv.kubernetes.io/bound-by-controller": "yes" } };
  it.each<[string, VolumeObservation, object]>([
    ["that names it: Bound", observed(bound, { claim: claim({ volumeName: "v" }) }), toPhase("Bound")],
    ["and rests", observed(volume({ claimRef: ref }), { claim: claim({ volumeName: "v" }) }), settle],
    ["that names none: the claim binds", observed(bound, { claim: claim({}) }), { step: "wakeClaim" }],
    [
      "of another mode: an event on the volume",
      observed(bound, { claim: claim({ volumeMode: "Block" }) }),
      { step: "reportOnVolume", type: "Warning", reason: "VolumeMismatch" },
    ],
    [
      "then on the claim",
      observed(bound, { claim: claim({ volumeMode: "Block" }), reports: 1 }),
      { step: "reportOnClaim", type: "Warning", reason: "VolumeMismatch" },
    ],
    ["and that is all", observed(bound, { claim: claim({ volumeMode: "Block" }), reports: 2 }), settle],
    [
      "that has another: a volume made for it is released",
      observed(
        volume({ claimRef: ref, persistentVolumeReclaimPolicy: "Delete" }, "Bound", {
          annotations: provisioned,
        }),
        { claim: claim({ volumeName: "w" }) },
      ),
      toPhase("Released"),
    ],
    [
      "that has another: one that is retained is not",
      observed(
        volume({ claimRef: ref, persistentVolumeReclaimPolicy: "Retain" }, "Bound", {
          annotations: provisioned,
        }),
        { claim: claim({ volumeName: "w" }) },
      ),
      { step: "unbind" },
    ],
  ])("%s", (_name, given, step) => {
    expect(decide(given)).toMatchObject(step);
  });

  it("that has another: the controller's own claimRef goes as a whole, of the user's only the UID", () => {
    const elsewhere = { claim: claim({ volumeName: "w" }) };
    const ofController = decide(observed(volume({ claimRef: ref }, "Bound", byController), elsewhere));
    expect(ofController).toMatchObject({
      step: "unbind",
      volume: { spec: {}, metadata: { annotations: {} } },
    });
    const ofUser = decide(observed(volume({ claimRef: ref }), elsewhere));
    expect(ofUser).toMatchObject({ volume: { spec: { claimRef: { name: "a", namespace: "default" } } } });
    for (const step of [ofController, ofUser]) {
      if (step.step !== "unbind") throw new Error(step.step);
      expect(step.volume.spec?.claimRef?.uid).toBeUndefined();
    }
  });
});

describe("the claim is gone", () => {
  const unknown = "Volume has an unrecognized PersistentVolumeReclaimPolicy: Shred";
  const failed = (message: string, policy: string) =>
    volume({ claimRef: ref, persistentVolumeReclaimPolicy: policy }, "Failed", {}, message);
  const noRecycler =
    "No recycler plugin found for the volume! The reclaim policy Recycle is deprecated: set persistentVolumeReclaimPolicy to Retain or Delete";
  it.each<[string, VolumeObservation, object]>([
    ["Released first", observed(volume({ claimRef: ref })), toPhase("Released")],
    ["without a policy it is retained", observed(released({})), settle],
    ["Retain", observed(released({ persistentVolumeReclaimPolicy: "Retain" })), settle],
    ["Delete", observed(released({ persistentVolumeReclaimPolicy: "Delete" })), { step: "delete" }],
    [
      "Delete, of a failed one again",
      observed(volume({ claimRef: ref, persistentVolumeReclaimPolicy: "Delete" }, "Failed", {}, "in use")),
      { step: "delete" },
    ],
    [
      "Delete, already being deleted",
      observed(
        released({ persistentVolumeReclaimPolicy: "Delete" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      ),
      settle,
    ],
    [
      "Delete, an external provisioner's",
      observed(released({ persistentVolumeReclaimPolicy: "Delete" }, { annotations: migratedTo })),
      settle,
    ],
    ["Recycle fails", observed(released({ persistentVolumeReclaimPolicy: "Recycle" })), toPhase("Failed")],
    [
      "and is reported",
      observed(failed(noRecycler, "Recycle"), { hasNewPhase: true }),
      { step: "reportOnVolume", type: "Warning", reason: "VolumeFailedRecycle", message: noRecycler },
    ],
    ["once", observed(failed(noRecycler, "Recycle"), { hasNewPhase: true, reports: 1 }), settle],
    ["not in each pass", observed(failed(noRecycler, "Recycle")), settle],
    [
      "an unknown policy fails",
      observed(released({ persistentVolumeReclaimPolicy: "Shred" })),
      toPhase("Failed"),
    ],
    [
      "and is reported, too",
      observed(failed(unknown, "Shred"), { hasNewPhase: true }),
      { step: "reportOnVolume", type: "Warning", reason: "VolumeUnknownReclaimPolicy", message: unknown },
    ],
  ])("%s", (_name, given, step) => {
    expect(decide(given)).toMatchObject(step);
  });
});
