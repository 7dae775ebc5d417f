import type { Stored } from "@longshore/kube";
import type {
  VolumeGroupSnapshot,
  VolumeSnapshot,
  VolumeSnapshotClass,
  VolumeSnapshotContent,
} from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { decideSnapshotGoal, type SnapshotFacts, type SnapshotGoal } from "./snapshot-goal.ts";

const prefix = "snapshot.storage.kubernetes.io/";
const asSource = `${prefix}volumesnapshot-as-source-protection`;
const bound = `${prefix}volumesnapshot-bound-protection`;
const inGroup = `${prefix}volumesnapshot-in-group-protection`;
const deleted = "2026-01-01T00:00:00Z";
const owner = {
  apiVersion: "groupsnapshot.storage.k8s.io/v1beta2",
  kind: "VolumeGroupSnapshot",
  name: "g",
  uid: "gu",
};

interface Change {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

const aSnapshot = ({ metadata = {}, spec = {}, status }: Change = {}) =>
  ({
    metadata: {
      name: "s",
      namespace: "n",
      uid: "u",
      resourceVersion: "1",
      finalizers: [asSource, bound],
      ...metadata,
    },
    spec: { source: { persistentVolumeClaimName: "c" }, volumeSnapshotClassName: "k", ...spec },
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeSnapshot>;

const aContent = ({ metadata = {}, spec = {}, status }: Change = {}) =>
  ({
    metadata: { name: "snapcontent-u", uid: "cu", resourceVersion: "1", ...metadata },
    spec: {
      driver: "d",
      deletionPolicy: "Delete",
      source: { volumeHandle: "v" },
      volumeSnapshotRef: { name: "s", namespace: "n", uid: "u" },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeSnapshotContent>;

const aClass = (deletionPolicy = "Delete") =>
  ({ metadata: { name: "k" }, driver: "d", deletionPolicy }) as Stored<VolumeSnapshotClass>;
const aGroup = (metadata: object = {}) =>
  ({
    metadata: { name: "g", namespace: "n", uid: "gu", ...metadata },
    spec: { source: {} },
  }) as Stored<VolumeGroupSnapshot>;

const observed = (over: Partial<SnapshotFacts> = {}): SnapshotFacts => ({
  snapshot: aSnapshot(),
  content: undefined,
  snapshotClass: aClass(),
  isClaimFree: false,
  isRestoring: false,
  group: undefined,
  groupName: undefined,
  ...over,
});

const existing = { source: { volumeSnapshotContentName: "by-hand" } };
const byHand = (spec: object = {}) =>
  aContent({
    metadata: { name: "by-hand" },
    spec: { source: { snapshotHandle: "h" }, volumeSnapshotRef: { name: "s", namespace: "n" }, ...spec },
  });
const ready = { readyToUse: true, boundVolumeSnapshotContentName: "snapcontent-u" };
const gone = { deletionTimestamp: deleted };
const announced = { annotations: { [`${prefix}volumesnapshot-being-deleted`]: "yes" } };

type Expected = SnapshotGoal["kind"] | Partial<SnapshotGoal>;
const cases: readonly (readonly [name: string, given: Partial<SnapshotFacts>, expected: Expected])[] = [
  [
    "no source",
    { snapshot: aSnapshot({ spec: { source: {} } }) },
    { kind: "fail", reason: "SnapshotValidationError" },
  ],
  [
    "two sources",
    {
      snapshot: aSnapshot({
        spec: { source: { persistentVolumeClaimName: "c", volumeSnapshotContentName: "d" } },
      }),
    },
    { kind: "fail", reason: "SnapshotValidationError", notReady: true },
  ],
  [
    "no class named",
    { snapshot: aSnapshot({ spec: { volumeSnapshotClassName: undefined } }) },
    "chooseClass",
  ],
  [
    "no class of that name",
    { snapshotClass: undefined },
    { kind: "fail", reason: "GetSnapshotClassFailed", notReady: false },
  ],
  [
    "unprotected",
    { snapshot: aSnapshot({ metadata: { finalizers: ["x/y"] } }) },
    { kind: "protect", finalizers: [asSource, bound] },
  ],
  [
    "unprotected, to be retained",
    { snapshot: aSnapshot({ metadata: { finalizers: [] } }), snapshotClass: aClass("Retain") },
    { kind: "protect", finalizers: [asSource] },
  ],
  ["protected", {}, "createContent"],
  [
    "a content that is new",
    { content: aContent() },
    { kind: "storeStatus", status: { boundVolumeSnapshotContentName: "snapcontent-u", readyToUse: false } },
  ],
  [
    "a content that its driver has served",
    {
      snapshot: aSnapshot({
        status: {
          boundVolumeSnapshotContentName: "snapcontent-u",
          readyToUse: false,
          error: { message: "m" },
        },
      }),
      content: aContent({
        status: { readyToUse: true, creationTime: 1_700_000_000_000_000_000, restoreSize: 1 << 30 },
      }),
    },
    {
      kind: "storeStatus",
      status: { readyToUse: true, creationTime: "2023-11-14T22:13:20Z", restoreSize: "1Gi", error: null },
    },
  ],
  ["a claim that was let go too early", { content: aContent(), isClaimFree: true }, "holdClaim"],
  [
    "a claim that is free because all is ready",
    {
      snapshot: aSnapshot({
        status: { boundVolumeSnapshotContentName: "snapcontent-u", readyToUse: false },
      }),
      content: aContent({ status: { readyToUse: true } }),
      isClaimFree: true,
    },
    { kind: "storeStatus", status: { readyToUse: true } },
  ],
  [
    "a content that failed",
    {
      snapshot: aSnapshot({ status: { boundVolumeSnapshotContentName: "snapcontent-u", readyToUse: false } }),
      content: aContent({ status: { readyToUse: false, error: { message: "m", time: deleted } } }),
    },
    { kind: "storeStatus", status: { error: { message: "m", time: deleted } } },
  ],
  [
    "a content of its name for another",
    { content: aContent({ spec: { volumeSnapshotRef: { name: "s", namespace: "n", uid: "old" } } }) },
    { kind: "fail", reason: "SnapshotContentMisbound" },
  ],
  [
    "a content of its name that exists already",
    { content: aContent({ spec: { source: { snapshotHandle: "h" } } }) },
    { kind: "fail", reason: "SnapshotContentMismatch" },
  ],
  ["ready", { snapshot: aSnapshot({ status: ready }), content: aContent() }, "none"],
  [
    "ready, and the content is gone",
    { snapshot: aSnapshot({ status: ready }) },
    { kind: "fail", reason: "SnapshotContentMissing" },
  ],
  [
    "cut once, and the content is gone",
    { snapshot: aSnapshot({ status: { creationTime: deleted } }) },
    { kind: "fail", reason: "SnapshotContentMissing" },
  ],
  [
    "ready, and the content is another's",
    {
      snapshot: aSnapshot({ status: ready }),
      content: aContent({ spec: { volumeSnapshotRef: { name: "s", namespace: "n", uid: "new" } } }),
    },
    { kind: "fail", reason: "SnapshotMisbound" },
  ],
  [
    "ready, and its content is kept no longer",
    { snapshot: aSnapshot({ metadata: { finalizers: [asSource] }, status: ready }), content: aContent() },
    { kind: "protect", finalizers: [bound] },
  ],
  [
    "existing, no content",
    { snapshot: aSnapshot({ spec: existing }) },
    { kind: "fail", reason: "SnapshotContentMissing" },
  ],
  [
    "existing, to be bound",
    { snapshot: aSnapshot({ spec: existing }), content: byHand() },
    { kind: "bindContent", uid: "u", className: "k" },
  ],
  [
    "existing, bound, without a class of its own",
    {
      snapshot: aSnapshot({ spec: { ...existing, volumeSnapshotClassName: undefined } }),
      content: byHand({ volumeSnapshotRef: { name: "s", namespace: "n", uid: "u" } }),
    },
    "storeStatus",
  ],
  [
    "existing, in another namespace",
    {
      snapshot: aSnapshot({ spec: existing }),
      content: byHand({ volumeSnapshotRef: { name: "s", namespace: "m" } }),
    },
    { kind: "fail", reason: "SnapshotContentMisbound" },
  ],
  [
    "a member, before its content",
    { snapshot: aSnapshot({ metadata: { ownerReferences: [owner] } }) },
    "wait",
  ],
  [
    "a member, with its content",
    {
      snapshot: aSnapshot({
        metadata: { ownerReferences: [owner] },
        status: { boundVolumeSnapshotContentName: "snapcontent-u" },
      }),
      content: aContent({ status: { readyToUse: true, volumeGroupSnapshotHandle: "gh" } }),
      groupName: "g",
    },
    { kind: "storeStatus", status: { readyToUse: true, volumeGroupSnapshotName: "g" } },
  ],
  [
    "a content of a group that is not known yet",
    {
      content: aContent({ status: { readyToUse: true, volumeGroupSnapshotHandle: "gh" } }),
      groupName: "unknown",
    },
    "wait",
  ],
  [
    "a member that exists, learning of its group",
    {
      snapshot: aSnapshot({ spec: existing, status: { ...ready, volumeGroupSnapshotName: "g" } }),
      content: aContent(),
      group: aGroup(),
    },
    { kind: "joinGroup" },
  ],
  [
    "deleted, never protected",
    { snapshot: aSnapshot({ metadata: { ...gone, finalizers: ["x/y"] } }) },
    "none",
  ],
  [
    "deleted, without a content",
    { snapshot: aSnapshot({ metadata: gone }) },
    { kind: "removeFinalizers", finalizers: [asSource, bound] },
  ],
  ["deleted", { snapshot: aSnapshot({ metadata: gone }), content: aContent() }, "announceDeletion"],
  [
    "deleted, announced",
    { snapshot: aSnapshot({ metadata: gone }), content: aContent({ metadata: announced }) },
    "deleteContent",
  ],
  [
    "deleted, and its content, too",
    { snapshot: aSnapshot({ metadata: gone }), content: aContent({ metadata: { ...announced, ...gone } }) },
    "wait",
  ],
  [
    "deleted, to be retained",
    {
      snapshot: aSnapshot({ metadata: { ...gone, finalizers: [asSource] } }),
      content: aContent({ metadata: announced, spec: { deletionPolicy: "Retain" } }),
    },
    { kind: "removeFinalizers", finalizers: [asSource] },
  ],
  [
    "deleted while a volume is made from it",
    { snapshot: aSnapshot({ metadata: gone }), content: aContent(), isRestoring: true },
    { kind: "wait", reason: "SnapshotDeletePending" },
  ],
  [
    "deleted, of a content that is another's",
    {
      snapshot: aSnapshot({ metadata: gone }),
      content: aContent({ spec: { volumeSnapshotRef: { name: "s", namespace: "n", uid: "new" } } }),
      isRestoring: true,
    },
    { kind: "removeFinalizers", finalizers: [asSource, bound] },
  ],
  [
    "a member, deleted alone",
    {
      snapshot: aSnapshot({ metadata: { ...gone, ownerReferences: [owner] } }),
      content: aContent(),
      group: aGroup(),
    },
    { kind: "wait", reason: "SnapshotDeletePending" },
  ],
  [
    "a member, deleted with its group",
    {
      snapshot: aSnapshot({ metadata: { ...gone, ownerReferences: [owner] } }),
      content: aContent(),
      group: aGroup(gone),
    },
    { kind: "wait", message: "group snapshot n/g is being deleted" },
  ],
  [
    "a member whose group is gone",
    {
      snapshot: aSnapshot({
        metadata: { ...gone, finalizers: [asSource, inGroup], ownerReferences: [owner] },
      }),
    },
    { kind: "removeFinalizers", finalizers: [asSource, inGroup] },
  ],
];

describe("the step for a VolumeSnapshot", () => {
  it.each(cases)("%s", (_, given, expected) => {
    const step = decideSnapshotGoal(observed(given));
    expect(step).toMatchObject(typeof expected === "string" ? { kind: expected } : expected);
    if (step.kind === "storeStatus")
      expect(step.status).toEqual((expected as { status?: object }).status ?? step.status);
  });
});
