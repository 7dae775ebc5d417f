/** Every step of a pass over a VolumeGroupSnapshot, reached from the observation that calls for it. */
import type { Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import type {
  VolumeGroupSnapshot,
  VolumeGroupSnapshotClass,
  VolumeGroupSnapshotContent,
  VolumeSnapshot,
  VolumeSnapshotContent,
} from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { decideGroup, groupFailure } from "./decide-group.ts";
import type { GroupFacts } from "./group-goal.ts";
import type { GroupWork, ObservedGroup } from "./group-step.ts";

const decide = pureDecision(decideGroup);

const prefix = "groupsnapshot.storage.kubernetes.io/";
const finalizers = [`${prefix}volumegroupsnapshot-bound-protection`];
const gone = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const announced = { annotations: { [`${prefix}volumegroupsnapshot-being-deleted`]: "yes" } };

const aGroup = (metadata: object = {}, spec: object = {}, status?: object) =>
  ({
    metadata: { name: "g", namespace: "n", uid: "u", resourceVersion: "1", finalizers, ...metadata },
    spec: { source: { selector: {} }, volumeGroupSnapshotClassName: "k", ...spec },
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeGroupSnapshot>;
const aContent = (metadata: object = {}, spec: object = {}, status?: object) =>
  ({
    metadata: { name: "groupsnapcontent-u", uid: "cu", resourceVersion: "1", ...metadata },
    spec: {
      driver: "d",
      deletionPolicy: "Delete",
      source: { volumeHandles: ["v"] },
      volumeGroupSnapshotRef: { name: "g", namespace: "n", uid: "u" },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeGroupSnapshotContent>;
const aMember = (name: string) =>
  ({ metadata: { name, namespace: "n", uid: name, resourceVersion: "1" } }) as Stored<VolumeSnapshot>;

const base: GroupFacts = {
  group: aGroup(),
  content: undefined,
  groupClass: {
    metadata: { name: "k" },
    driver: "d",
    deletionPolicy: "Delete",
  } as Stored<VolumeGroupSnapshotClass>,
  members: [],
  restoring: undefined,
  memberSnapshot: () => undefined,
  memberContent: () => undefined,
  volume: () => undefined,
};

interface Given {
  readonly facts?: Partial<GroupFacts>;
  readonly work?: GroupWork;
  readonly failure?: ObservedGroup["failure"];
}
const observed = ({ facts, work = {}, failure }: Given): ObservedGroup => ({
  key: "n/g",
  facts: { ...base, ...facts },
  work,
  failure,
});

const made = {
  volumeGroupSnapshotHandle: "gh",
  readyToUse: true,
  creationTime: "2026-01-01T00:00:00Z",
  volumeSnapshotInfoList: [{ volumeHandle: "v", snapshotHandle: "h", readyToUse: true }],
};
const boundName = { boundVolumeGroupSnapshotContentName: "groupsnapcontent-u" };
const bound = { group: aGroup({}, {}, boundName), content: aContent({}, {}, made) };
const memberSnapshot = () => aMember("m");
const memberContent = (status?: object) => () =>
  ({
    metadata: { name: "mc" },
    spec: {},
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeSnapshotContent>;
const memberStatus = { snapshotHandle: "h", volumeGroupSnapshotHandle: "gh", readyToUse: true };
const noClass = { group: aGroup({}, { volumeGroupSnapshotClassName: undefined }) };
const newContent = {} as VolumeGroupSnapshotContent;
const deleting = aGroup(gone);
const kept = aContent(announced, { deletionPolicy: "Retain" });
const lost = { group: aGroup({}, {}, { creationTime: "2026-01-01T00:00:00Z" }) };
const byHand = aContent(
  { name: "by-hand" },
  {
    source: { groupSnapshotHandles: { volumeGroupSnapshotHandle: "gh", volumeSnapshotHandles: ["h"] } },
    volumeGroupSnapshotRef: { name: "g", namespace: "n" },
  },
);
const existing = aGroup({}, { source: { volumeGroupSnapshotContentName: "by-hand" } });
const members = [aMember("a"), aMember("b")];
const report = { reason: "R", message: "M", notReady: true };
const error = new Error("x");

const rows: readonly [name: string, given: Given, step: string][] = [
  ["no class named", { facts: noClass }, "chooseClass"],
  ["the class is chosen", { facts: noClass, work: { chosenClass: "k" } }, "storeClass"],
  ["unprotected", { facts: { group: aGroup({ finalizers: [] }) } }, "addFinalizer"],
  ["a new one", {}, "prepareContent"],
  ["its content is composed", { work: { newContent } }, "createContent"],
  ["its content is made", { work: { newContent, isContentCreated: true } }, "reportCreating"],
  ["a content by hand", { facts: { group: existing, content: byHand } }, "bindContent"],
  ["it is made", { facts: { content: aContent({}, {}, made) } }, "storeStatus"],
  [
    "its status is stored",
    { facts: { content: aContent({}, {}, made) }, work: { isStatusStored: true } },
    "reportCreated",
  ],
  ["its members are lacking", { facts: bound }, "createMember"],
  ["a member has no content", { facts: { ...bound, memberSnapshot } }, "createMemberContent"],
  [
    "a member's content has no status",
    { facts: { ...bound, memberSnapshot, memberContent: memberContent() } },
    "storeMemberStatus",
  ],
  [
    "a member is not bound",
    { facts: { ...bound, memberSnapshot, memberContent: memberContent(memberStatus) } },
    "bindMember",
  ],
  ["all writes are made", { facts: bound, work: { membersDone: 1 } }, "continue"],
  ["its content is lost", { facts: lost }, "readContent"],
  [
    "its content is lost in the cache only",
    { facts: lost, work: { contentOnServer: "there" } },
    "awaitCache",
  ],
  ["its content is lost on the server", { facts: lost, work: { contentOnServer: "none" } }, "fail"],
  ["deleted", { facts: { group: deleting, content: aContent() } }, "announceDeletion"],
  ["deleted, announced", { facts: { group: deleting, content: aContent(announced) } }, "deleteContent"],
  ["deleted, used", { facts: { group: deleting, content: aContent(), restoring: "n/m" } }, "reportWait"],
  [
    "deleted, used, reported",
    { facts: { group: deleting, content: aContent(), restoring: "n/m" }, work: { isWaitReported: true } },
    "lookLater",
  ],
  [
    "deleted, its content going, its members not",
    { facts: { group: deleting, content: aContent({ ...announced, ...gone }), members } },
    "deleteMember",
  ],
  [
    "deleted, its members, too",
    {
      facts: { group: deleting, content: aContent({ ...announced, ...gone }), members },
      work: { membersDone: 2 },
    },
    "continue",
  ],
  ["deleted, to be retained", { facts: { group: deleting, content: kept } }, "removeFinalizer"],
  ["deleted, without a content in the cache", { facts: { group: deleting } }, "readContent"],
  [
    "deleted with members, without a content in the cache",
    { facts: { group: deleting, members } },
    "readContent",
  ],
  [
    "deleted with members, with a content on the server only",
    { facts: { group: deleting, members }, work: { contentOnServer: "there" } },
    "awaitCache",
  ],
  [
    "deleted with members, without a content",
    { facts: { group: deleting, members }, work: { contentOnServer: "none" } },
    "deleteMember",
  ],
  [
    "deleted, without a content",
    { facts: { group: deleting }, work: { contentOnServer: "none" } },
    "removeFinalizer",
  ],
  ["not held any more", { facts: { group: aGroup({ ...gone, finalizers: [] }) } }, "settle"],
  ["failed", { failure: { error, report } }, "reportFailure"],
  ["failed, reported", { failure: { error, report, isReported: true } }, "storeFailure"],
  [
    "failed, only for an event",
    { failure: { error, report: { ...report, isEventOnly: true }, isReported: true } },
    "retry",
  ],
];

describe("the steps over a group snapshot", () => {
  it.each(rows)("%s", (_, given, step) => {
    expect(decide(observed(given)).step).toBe(step);
  });

  it("write sixteen members a pass", () => {
    const volumeSnapshotInfoList = Array.from({ length: 40 }, (_, n) => ({ volumeHandle: `v${n}` }));
    const content = aContent({}, {}, { ...made, volumeSnapshotInfoList });
    const facts = { ...bound, content };
    expect(decide(observed({ facts, work: { membersDone: 15 } })).step).toBe("createMember");
    expect(decide(observed({ facts, work: { membersDone: 16 } })).step).toBe("continue");
  });

  it("name the member that cannot be deleted", () => {
    const facts = { group: deleting, content: aContent({ ...announced, ...gone }), members };
    expect(groupFailure(observed({ facts, work: { membersDone: 1 } }), error)?.report).toMatchObject({
      reason: "SnapshotDeleteError",
      message: "failed to delete snapshot API object n/b part of group snapshot n/g: x",
    });
  });
});
