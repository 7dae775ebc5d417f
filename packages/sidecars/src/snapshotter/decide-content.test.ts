import { CsiCallError } from "@longshore/csi";
import type { Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import type {
  VolumeGroupSnapshotContent,
  VolumeSnapshotClass,
  VolumeSnapshotContent,
} from "@longshore/storage";
import { describe, expect, it } from "vitest";
import type { ContentProgress, ObservedContent } from "./content-rules.ts";
import { type ContentPassStep, decideContent } from "./decide-content.ts";
import { readySnapshot } from "./driver-snapshots.ts";
import { type GroupTypes, groupRules } from "./group-rules.ts";
import { type SingleTypes, snapshotRules } from "./snapshot-rules.ts";

const finalizer = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
const marked = { "snapshot.storage.kubernetes.io/volumesnapshot-being-created": "yes" };
const released = { "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted": "yes" };
const secret = {
  "snapshot.storage.kubernetes.io/deletion-secret-name": "s",
  "snapshot.storage.kubernetes.io/deletion-secret-namespace": "n",
};
const naming = { snapshotNamePrefix: "snapshot", snapshotNameUuidLength: -1, extraCreateMetadata: false };
const decide = pureDecision(decideContent(snapshotRules(naming, true)));
const decideBlind = pureDecision(decideContent(snapshotRules(naming, false)));
const contentClass: VolumeSnapshotClass = {
  driver: "d",
  deletionPolicy: "Delete",
  parameters: { type: "t" },
};

interface Given {
  readonly deleting?: boolean;
  readonly held?: boolean;
  readonly annotations?: Record<string, string>;
  readonly spec?: Partial<VolumeSnapshotContent["spec"]>;
  readonly status?: VolumeSnapshotContent["status"];
}

const content = ({ deleting = false, held = true, annotations = {}, spec = {}, status }: Given = {}) =>
  ({
    metadata: {
      name: "c",
      uid: "1",
      resourceVersion: "7",
      annotations,
      ...(held ? { finalizers: [finalizer] } : {}),
      ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: {
      driver: "d",
      deletionPolicy: "Delete",
      source: { volumeHandle: "v" },
      volumeSnapshotClassName: "class",
      volumeSnapshotRef: { name: "s", namespace: "n", uid: "u" },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeSnapshotContent>;

type Observed = ObservedContent<SingleTypes>;
type Progress = ContentProgress<SingleTypes>;
const observed = (given: Given = {}, progress: Progress = {}, over: Partial<Observed> = {}): Observed => ({
  content: content(given),
  contentClass,
  nowNs: 1_000_000_000,
  progress,
  ...over,
});

const known = (ready = true): Progress => ({
  isBegun: true,
  known: { state: { ...readySnapshot("h"), ready }, nowNs: 1_000_000_000 },
});
const existing = { source: { snapshotHandle: "h" } };
const made = { snapshotHandle: "h", readyToUse: true, creationTime: 1 };
const deleted: Given = { deleting: true, annotations: released, status: made };
const finalError = new CsiCallError("CreateSnapshot", "INTERNAL", "no", { answered: true });
const finalFailure = { error: finalError, isFinalCreateError: true };

describe("the step for a content", () => {
  it.each<[string, Observed, ContentPassStep<SingleTypes>["step"]]>([
    ["that is ready", observed({ status: made }), "settle"],
    // Creation
    ["that needs a secret", observed({ annotations: secret }), "readSecret"],
    ["that has its secret", observed({ annotations: secret }, { secrets: {} }), "storeIntent"],
    ["that is new", observed({ held: false }), "storeIntent"],
    ["that is marked, but not held", observed({ held: false, annotations: marked }), "storeIntent"],
    ["that is marked and held", observed({ annotations: marked }), "createSnapshot"],
    [
      "whose handle is known needs no mark",
      observed({ held: false, status: { snapshotHandle: "h", readyToUse: false } }),
      "createSnapshot",
    ],
    [
      "deleted while the outcome is uncertain",
      observed({ deleting: true, annotations: { ...released, ...marked } }),
      "createSnapshot",
    ],
    ["with the driver's answer", observed({ annotations: marked }, known()), "reportStatus"],
    [
      "with that in its status",
      observed({ annotations: marked }, { ...known(), isStatusStored: true }),
      "removeMark",
    ],
    [
      "with that in its status, ready",
      observed({ annotations: marked }, { ...known(), isStatusStored: true, isMarkRemoved: true }),
      "settle",
    ],
    [
      "with that in its status, not ready",
      observed({ annotations: marked }, { ...known(false), isStatusStored: true, isMarkRemoved: true }),
      "lookAgain",
    ],
    [
      "with that in its status, deleted meanwhile",
      observed(
        { deleting: true, annotations: { ...marked, ...released } },
        { ...known(), isStatusStored: true, isMarkRemoved: true },
      ),
      "decideAgain",
    ],
    ["with a mark that is left over", observed({ annotations: marked, status: made }), "removeMark"],
    [
      "whose mark that was left over is gone",
      observed({ annotations: marked, status: made }, { isMarkRemoved: true }),
      "decideAgain",
    ],
    // Looks
    [
      "of a snapshot that exists",
      observed({ spec: { ...existing, volumeSnapshotClassName: undefined as never } }),
      "look",
    ],
    ["of one that is seen", observed({ spec: existing }, { known: known().known as never }), "reportStatus"],
    [
      "of one that is not ready",
      observed({ spec: existing }, { known: known(false).known as never, isStatusStored: true }),
      "lookAgain",
    ],
    // Deletion
    ["deleted with its snapshot, by the cache", observed(deleted), "readLive"],
    ["deleted with its snapshot", observed(deleted, { isLive: true }), "deleteSnapshot"],
    [
      "deleted, with a secret",
      observed({ ...deleted, annotations: { ...released, ...secret } }, { isLive: true }),
      "readSecret",
    ],
    ["whose snapshot is deleted", observed(deleted, { isLive: true, isDeleted: true }), "removeFinalizer"],
    [
      "that nothing of ours holds",
      observed(deleted, { isLive: true, isDeleted: true, isFinalizerRemoved: true }),
      "settle",
    ],
    ["to be retained", observed({ ...deleted, spec: { deletionPolicy: "Retain" } }), "removeFinalizer"],
    // What the server has now
    [
      "that is retained by now",
      observed({ ...deleted, spec: { deletionPolicy: "Retain" } }, { isLive: true }),
      "removeFinalizer",
    ],
    ["that is not deleted after all", observed({ status: made }, { isLive: true }), "settle"],
    ["whose snapshot is still there", observed({ deleting: true, status: made }, { isLive: true }), "settle"],
    // Failures
    [
      "whose creation surely failed",
      observed({ annotations: marked }, { isBegun: true, failure: finalFailure }),
      "removeMark",
    ],
    [
      "whose creation surely failed, without the mark",
      observed({ annotations: marked }, { isBegun: true, isMarkRemoved: true, failure: finalFailure }),
      "emitFailure",
    ],
    [
      "whose creation may be under way",
      observed({ annotations: marked }, { isBegun: true, failure: { error: finalError } }),
      "emitFailure",
    ],
    [
      "whose failure is emitted",
      observed({ annotations: marked }, { isBegun: true, failure: { error: finalError, isEmitted: true } }),
      "reportFailure",
    ],
    [
      "whose failure is stored",
      observed(
        { annotations: marked },
        { isBegun: true, failure: { error: finalError, isEmitted: true, isStored: true } },
      ),
      "fail",
    ],
    [
      "whose failure is known already",
      observed(
        {
          annotations: marked,
          status: { error: { message: `Failed to create snapshot: ${finalError.message}` } },
        },
        { isBegun: true, failure: { error: finalError } },
      ),
      "fail",
    ],
    [
      "whose deletion failed",
      observed(deleted, { isLive: true, failure: { error: finalError } }),
      "emitFailure",
    ],
    [
      "whose deletion failed, as an event says",
      observed(deleted, { isLive: true, failure: { error: finalError, isEmitted: true } }),
      "fail",
    ],
  ])("%s", (_, given, step) => expect(decide(given).step).toBe(step));

  it.each<[string, Observed, string]>([
    ["no class", observed({}, {}, { contentClass: undefined }), 'VolumeSnapshotClass "class" not found'],
    ["no snapshot", observed({ spec: { volumeSnapshotRef: {} } }), "is bound to no VolumeSnapshot"],
    [
      "half a secret",
      observed({ annotations: { ...secret, "snapshot.storage.kubernetes.io/deletion-secret-name": "" } }),
      "neither may be empty",
    ],
  ])("of a content with %s says so", (_, given, message) => {
    expect(decide(given)).toMatchObject({
      step: "emitFailure",
      reason: "SnapshotCreationFailed",
      message: expect.stringContaining(message),
    });
  });

  it("takes a driver that cannot be asked at its word", () => {
    expect(decideBlind(observed({ spec: existing }))).toMatchObject({
      step: "reportStatus",
      patch: { status: { snapshotHandle: "h", readyToUse: true } },
    });
  });

  it("names the version in what it writes before the driver is asked, and in the end of the finalizer", () => {
    expect(decide(observed({ held: false }))).toMatchObject({
      patch: { metadata: { resourceVersion: "7", finalizers: [finalizer] } },
    });
    expect(decide(observed(deleted, { isLive: true, isDeleted: true }))).toMatchObject({
      patch: { metadata: { resourceVersion: "7", finalizers: null } },
    });
  });

  it("of a group reads the version of the API that is served before it writes the status", () => {
    const rules = groupRules({
      groupSnapshotNamePrefix: "g",
      groupSnapshotNameUuidLength: -1,
      extraCreateMetadata: false,
    });
    const group = {
      metadata: { name: "c", uid: "1", resourceVersion: "7" },
      spec: {
        driver: "d",
        deletionPolicy: "Delete",
        source: { volumeHandles: ["v"] },
        volumeGroupSnapshotRef: { name: "s", namespace: "n", uid: "u" },
      },
    } as Stored<VolumeGroupSnapshotContent>;
    const state = {
      handle: "g",
      ready: true,
      creationTime: 1,
      snapshots: [{ volumeHandle: "v", snapshotHandle: "h", readyToUse: true }],
    };
    const step = (progress: ContentProgress<GroupTypes>) =>
      pureDecision(decideContent(rules))({
        content: group,
        contentClass: undefined,
        nowNs: 0,
        progress: { isBegun: true, known: { state, nowNs: 0 }, ...progress },
      });
    expect(step({})).toEqual({ step: "readServedVersion" });
    expect(step({ served: { version: "v1beta1" } })).toMatchObject({
      patch: { status: { volumeSnapshotHandlePairList: [{ volumeHandle: "v", snapshotHandle: "h" }] } },
    });
  });
});
