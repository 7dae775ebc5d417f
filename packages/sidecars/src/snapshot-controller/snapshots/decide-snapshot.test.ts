/** Every step of a pass over a VolumeSnapshot, reached from the observation that calls for it. */
import type { PersistentVolumeClaim, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import type {
  VolumeGroupSnapshot,
  VolumeSnapshot,
  VolumeSnapshotClass,
  VolumeSnapshotContent,
} from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { decideSnapshot, snapshotFailure } from "./decide-snapshot.ts";
import type { SnapshotFacts } from "./snapshot-goal.ts";
import type { ObservedSnapshot, SnapshotWork } from "./snapshot-step.ts";

const decide = pureDecision(decideSnapshot);

const prefix = "snapshot.storage.kubernetes.io/";
const finalizers = [
  `${prefix}volumesnapshot-as-source-protection`,
  `${prefix}volumesnapshot-bound-protection`,
];
const gone = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const groupOwner = {
  apiVersion: "groupsnapshot.storage.k8s.io/v1",
  kind: "VolumeGroupSnapshot",
  name: "g",
  uid: "gu",
};

const aSnapshot = (metadata: object = {}, spec: object = {}, status?: object) =>
  ({
    metadata: { name: "s", namespace: "n", uid: "u", resourceVersion: "1", finalizers, ...metadata },
    spec: { source: { persistentVolumeClaimName: "c" }, volumeSnapshotClassName: "k", ...spec },
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeSnapshot>;
const aContent = (spec: object = {}, metadata: object = {}) =>
  ({
    metadata: { name: "snapcontent-u", uid: "cu", resourceVersion: "1", ...metadata },
    spec: {
      driver: "d",
      deletionPolicy: "Delete",
      source: { volumeHandle: "v" },
      volumeSnapshotRef: { name: "s", namespace: "n", uid: "u" },
      ...spec,
    },
  }) as Stored<VolumeSnapshotContent>;
const aClaim = (metadata: object = {}) =>
  ({ metadata: { name: "c", namespace: "n", uid: "pu", ...metadata } }) as Stored<PersistentVolumeClaim>;
const held = aClaim({ finalizers: [`${prefix}pvc-as-source-protection`] });
const group = { metadata: { name: "g", namespace: "n", uid: "gu" } } as Stored<VolumeGroupSnapshot>;

const base: SnapshotFacts = {
  snapshot: aSnapshot(),
  content: undefined,
  snapshotClass: {
    metadata: { name: "k" },
    driver: "d",
    deletionPolicy: "Delete",
  } as Stored<VolumeSnapshotClass>,
  isClaimFree: false,
  isRestoring: false,
  group: undefined,
  groupName: undefined,
};

interface Given {
  readonly facts?: Partial<SnapshotFacts>;
  readonly claim?: Stored<PersistentVolumeClaim> | undefined;
  readonly work?: SnapshotWork;
  readonly failure?: ObservedSnapshot["failure"];
}
const observed = ({ facts, claim = aClaim(), work = {}, failure }: Given): ObservedSnapshot => ({
  key: "n/s",
  facts: { ...base, ...facts },
  claim,
  work,
  failure,
});

const created = { status: { creationTime: "2026-01-01T00:00:00Z" } };
const newContent = aContent();
const deleting = aSnapshot(gone);
const announced = { annotations: { [`${prefix}volumesnapshot-being-deleted`]: "yes" } };
const inGroup = aSnapshot({ ...gone, ownerReferences: [groupOwner] });
const noClass = { snapshot: aSnapshot({}, { volumeSnapshotClassName: undefined }) };
const made = { ...aContent(), status: { creationTime: 1_700_000_000_000_000_000, readyToUse: true } };
const existing = { source: { volumeSnapshotContentName: "by-hand" } };
const byHand = aContent(
  { source: { snapshotHandle: "h" }, volumeSnapshotRef: { name: "s", namespace: "n" } },
  { name: "by-hand" },
);
const ready = { readyToUse: true, boundVolumeSnapshotContentName: "snapcontent-u" };
const report = { reason: "R", message: "M", notReady: true };
const error = new Error("x");

const rows: readonly [name: string, given: Given, step: string][] = [
  ["no class named", { facts: noClass }, "chooseClass"],
  [
    "the class is chosen",
    { facts: noClass, work: { chosenClass: { name: "k", deletionPolicy: "Delete" } } },
    "storeClass",
  ],
  ["unprotected", { facts: { snapshot: aSnapshot({ finalizers: [] }) } }, "addFinalizers"],
  ["a new one", {}, "prepareContent"],
  ["its claim is free", { work: { newContent } }, "holdClaim"],
  ["its claim is held", { claim: held, work: { newContent } }, "createContent"],
  ["its claim is held now", { work: { newContent, isClaimHeld: true } }, "createContent"],
  ["its claim is being deleted", { claim: aClaim(gone), work: { newContent } }, "fail"],
  ["its content is made", { work: { newContent, isContentCreated: true } }, "reportCreating"],
  ["its claim was let go", { facts: { content: aContent(), isClaimFree: true } }, "holdClaim"],
  [
    "its claim is held again",
    { facts: { content: aContent(), isClaimFree: true }, work: { isClaimHeld: true } },
    "continue",
  ],
  ["a content by hand", { facts: { snapshot: aSnapshot({}, existing), content: byHand } }, "bindContent"],
  ["it is made", { facts: { content: made } }, "storeStatus"],
  ["its status is stored", { facts: { content: made }, work: { isStatusStored: true } }, "reportCreated"],
  [
    "its creation is reported",
    { facts: { content: made }, work: { isStatusStored: true, isCreationReported: true } },
    "reportReady",
  ],
  ["ready", { facts: { snapshot: aSnapshot({}, {}, ready), content: aContent() } }, "settle"],
  [
    "ready, and of a group",
    { facts: { snapshot: aSnapshot({}, {}, ready), content: aContent(), group } },
    "joinGroup",
  ],
  ["its content is lost", { facts: { snapshot: aSnapshot({}, {}, created.status) } }, "readContent"],
  [
    "its content is lost in the cache only",
    { facts: { snapshot: aSnapshot({}, {}, created.status) }, work: { contentOnServer: "there" } },
    "awaitCache",
  ],
  [
    "its content is lost on the server",
    { facts: { snapshot: aSnapshot({}, {}, created.status) }, work: { contentOnServer: "none" } },
    "fail",
  ],
  ["deleted", { facts: { snapshot: deleting, content: aContent() } }, "announceDeletion"],
  [
    "deleted, announced",
    { facts: { snapshot: deleting, content: aContent({}, announced) } },
    "deleteContent",
  ],
  [
    "deleted, its content going",
    { facts: { snapshot: deleting, content: aContent({}, { ...announced, ...gone }) } },
    "lookLater",
  ],
  ["deleted, used", { facts: { snapshot: deleting, content: aContent(), isRestoring: true } }, "reportWait"],
  [
    "deleted, used, reported",
    { facts: { snapshot: deleting, content: aContent(), isRestoring: true }, work: { isWaitReported: true } },
    "lookLater",
  ],
  [
    "deleted, to be retained",
    { facts: { snapshot: deleting, content: aContent({ deletionPolicy: "Retain" }, announced) } },
    "removeFinalizers",
  ],
  ["deleted, without a content in the cache", { facts: { snapshot: deleting } }, "readContent"],
  [
    "deleted, with a content on the server only",
    { facts: { snapshot: deleting }, work: { contentOnServer: "there" } },
    "awaitCache",
  ],
  [
    "deleted, without a content",
    { facts: { snapshot: deleting }, work: { contentOnServer: "none" } },
    "removeFinalizers",
  ],
  ["deleted, of a group that the cache has lost", { facts: { snapshot: inGroup } }, "readGroup"],
  [
    "deleted, of a group on the server",
    { facts: { snapshot: inGroup }, work: { groupOnServer: "there" } },
    "awaitGroup",
  ],
  ["failed", { failure: { error, report } }, "reportFailure"],
  ["failed, reported", { failure: { error, report, isReported: true } }, "storeFailure"],
  ["failed, stored", { failure: { error, report, isReported: true, isStored: true } }, "retry"],
  ["failed, not to be reported", { failure: { error, report: undefined } }, "retry"],
  [
    "failed as its status says",
    { facts: { snapshot: aSnapshot({}, {}, { error: { message: "M" } }) }, failure: { error, report } },
    "retry",
  ],
];

describe("the steps over a snapshot", () => {
  it.each(rows)("%s", (_, given, step) => {
    expect(decide(observed(given)).step).toBe(step);
  });

  it("fail without their claim, and say so", () => {
    const step = decide({ ...observed({}), claim: undefined });
    expect(step).toMatchObject({
      step: "fail",
      failure: {
        report: {
          reason: "SnapshotContentCreationFailed",
          message: 'Failed to create snapshot content with error claim "n/c" not found',
          notReady: true,
        },
      },
    });
  });

  it("are reported only where the user can do something about it", () => {
    const facts = { snapshot: deleting, content: aContent() };
    expect(snapshotFailure(observed({ facts }), error)).toBeUndefined();
    const deletion = snapshotFailure(
      observed({ facts: { ...facts, content: aContent({}, announced) } }),
      error,
    );
    expect(deletion?.report).toMatchObject({ reason: "SnapshotContentObjectDeleteError", isEventOnly: true });
  });
});
