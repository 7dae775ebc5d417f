import type { Stored } from "@longshore/kube";
import type {
  VolumeGroupSnapshot,
  VolumeGroupSnapshotClass,
  VolumeGroupSnapshotContent,
  VolumeSnapshot,
  VolumeSnapshotContent,
} from "@longshore/storage";
import { describe, expect, it } from "vitest";
import type { ContentStep } from "../../snapshotter/content-step.ts";
import { decideGroupContentStep, type GroupHandles } from "../../snapshotter/decide-group-content-step.ts";
import { memberNames } from "../group-binding.ts";
import { decideGroupGoal, type GroupFacts, type GroupGoal } from "./group-goal.ts";

const prefix = "groupsnapshot.storage.kubernetes.io/";
const finalizer = `${prefix}volumegroupsnapshot-bound-protection`;
const contentFinalizer = `${prefix}volumegroupsnapshotcontent-bound-protection`;
const beingDeleted = { [`${prefix}volumegroupsnapshot-being-deleted`]: "yes" };
const beingCreated = { [`${prefix}volumegroupsnapshot-being-created`]: "yes" };
const gone = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const names = memberNames("u", "v");

interface Change {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

const aGroup = ({ metadata = {}, spec = {}, status }: Change = {}) =>
  ({
    metadata: { name: "g", namespace: "n", uid: "u", finalizers: [finalizer], ...metadata },
    spec: { source: { selector: {} }, volumeGroupSnapshotClassName: "k", ...spec },
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeGroupSnapshot>;

const aContent = ({ metadata = {}, spec = {}, status }: Change = {}) =>
  ({
    metadata: { name: "groupsnapcontent-u", uid: "cu", finalizers: [contentFinalizer], ...metadata },
    spec: {
      driver: "d",
      deletionPolicy: "Delete",
      source: { volumeHandles: ["v"] },
      volumeGroupSnapshotRef: { name: "g", namespace: "n", uid: "u" },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeGroupSnapshotContent>;

const made = {
  volumeGroupSnapshotHandle: "gh",
  readyToUse: true,
  creationTime: "2026-01-01T00:00:00Z",
  volumeSnapshotInfoList: [{ volumeHandle: "v", snapshotHandle: "h", readyToUse: true }],
};
const link = { boundVolumeGroupSnapshotContentName: "groupsnapcontent-u", readyToUse: false };
const existing = { source: { volumeGroupSnapshotContentName: "by-hand" } };
const handles = { groupSnapshotHandles: { volumeGroupSnapshotHandle: "gh", volumeSnapshotHandles: ["h"] } };
const byHand = (spec: object = {}) =>
  aContent({
    metadata: { name: "by-hand" },
    spec: { source: handles, volumeGroupSnapshotRef: { name: "g", namespace: "n" }, ...spec },
  });
const aMember = (over: Change = {}) =>
  ({
    metadata: { name: names.snapshot, namespace: "n", uid: "mu", ...over.metadata },
    spec: { source: { persistentVolumeClaimName: "c" } },
    ...(over.status === undefined ? {} : { status: over.status }),
  }) as Stored<VolumeSnapshot>;
const aMemberContent = (status?: object) =>
  ({
    metadata: { name: names.content },
    spec: {},
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeSnapshotContent>;
const memberStatus = { snapshotHandle: "h", volumeGroupSnapshotHandle: "gh", readyToUse: true };

const observed = (over: Partial<GroupFacts> = {}): GroupFacts => ({
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
  ...over,
});

interface Case {
  readonly name: string;
  readonly given: Partial<GroupFacts>;
  readonly expected: Partial<GroupGoal> | object;
}
const bound = { group: aGroup({ status: link }), content: aContent({ status: made }) };
const cases: readonly Case[] = [
  {
    name: "no source",
    given: { group: aGroup({ spec: { source: {} } }) },
    expected: { kind: "fail", reason: "GroupSnapshotValidationError" },
  },
  {
    name: "no class named",
    given: { group: aGroup({ spec: { volumeGroupSnapshotClassName: undefined } }) },
    expected: { kind: "chooseClass" },
  },
  {
    name: "no class of that name",
    given: { groupClass: undefined },
    expected: { kind: "fail", reason: "GetGroupSnapshotClassFailed" },
  },
  {
    name: "unprotected",
    given: { group: aGroup({ metadata: { finalizers: [] } }) },
    expected: { kind: "protect" },
  },
  { name: "protected", given: {}, expected: { kind: "createContent" } },
  {
    name: "with a content, to be bound first",
    given: { content: aContent({ status: made }) },
    expected: {
      kind: "storeStatus",
      status: { boundVolumeGroupSnapshotContentName: "groupsnapcontent-u", readyToUse: false },
    },
  },
  {
    name: "bound: first the snapshots of its members",
    given: bound,
    expected: { kind: "writeMembers", writes: [{ kind: "createSnapshot" }] },
  },
  {
    name: "then their contents",
    given: { ...bound, memberSnapshot: () => aMember() },
    expected: { kind: "writeMembers", writes: [{ kind: "createContent" }] },
  },
  {
    name: "then what is known of them",
    given: { ...bound, memberSnapshot: () => aMember(), memberContent: () => aMemberContent() },
    expected: { kind: "writeMembers", writes: [{ kind: "storeContentStatus", status: memberStatus }] },
  },
  {
    name: "then they are bound",
    given: { ...bound, memberSnapshot: () => aMember(), memberContent: () => aMemberContent(memberStatus) },
    expected: { kind: "writeMembers", writes: [{ kind: "bindSnapshot", contentName: names.content }] },
  },
  {
    name: "and only then it is ready",
    given: {
      ...bound,
      memberSnapshot: () => aMember({ status: { boundVolumeSnapshotContentName: names.content } }),
      memberContent: () => aMemberContent(memberStatus),
    },
    expected: { kind: "storeStatus", status: { readyToUse: true } },
  },
  {
    name: "ready",
    given: { group: aGroup({ status: { ...link, readyToUse: true } }), content: aContent({ status: made }) },
    expected: { kind: "none" },
  },
  {
    name: "ready, and the content is gone",
    given: { group: aGroup({ status: { ...link, readyToUse: true } }) },
    expected: { kind: "fail", reason: "GroupSnapshotContentMissing" },
  },
  {
    name: "cut once, and the content is gone",
    given: { group: aGroup({ status: { creationTime: "x" } }) },
    expected: { kind: "fail", reason: "GroupSnapshotContentMissing" },
  },
  {
    name: "existing, to be bound",
    given: { group: aGroup({ spec: existing }), content: byHand() },
    expected: { kind: "bindContent", uid: "u", className: "k" },
  },
  {
    name: "existing, for another",
    given: {
      group: aGroup({ spec: existing }),
      content: byHand({ volumeGroupSnapshotRef: { name: "x", namespace: "n" } }),
    },
    expected: { kind: "fail", reason: "GroupSnapshotContentMisbound" },
  },
  {
    name: "existing, and to be made",
    given: { group: aGroup({ spec: existing }), content: byHand({ source: { volumeHandles: ["v"] } }) },
    expected: { kind: "fail", reason: "GroupSnapshotContentMismatch" },
  },
  {
    name: "deleted, never protected",
    given: { group: aGroup({ metadata: { ...gone, finalizers: [] } }) },
    expected: { kind: "none" },
  },
  {
    name: "deleted before it was bound",
    given: { group: aGroup({ metadata: gone }), content: aContent() },
    expected: { kind: "announceDeletion" },
  },
  {
    name: "deleted, announced",
    given: {
      group: aGroup({ metadata: gone }),
      content: aContent({ metadata: { annotations: beingDeleted } }),
    },
    expected: { kind: "deleteContent" },
  },
  {
    name: "deleted, the content going: the members, too",
    given: {
      group: aGroup({ metadata: gone }),
      content: aContent({ metadata: { annotations: beingDeleted, ...gone } }),
      members: [aMember(), aMember({ metadata: gone })],
    },
    expected: { kind: "deleteMembers", members: [aMember()] },
  },
  {
    name: "deleted, all of it going",
    given: {
      group: aGroup({ metadata: gone }),
      content: aContent({ metadata: { annotations: beingDeleted, ...gone } }),
      members: [aMember({ metadata: gone })],
    },
    expected: { kind: "wait" },
  },
  {
    name: "deleted, to be retained",
    given: {
      group: aGroup({ metadata: gone }),
      content: aContent({ metadata: { annotations: beingDeleted }, spec: { deletionPolicy: "Retain" } }),
    },
    expected: { kind: "removeFinalizers" },
  },
  {
    name: "deleted while a volume is made from a member",
    given: { group: aGroup({ metadata: gone }), content: aContent(), restoring: "n/m" },
    expected: { kind: "wait", reason: "SnapshotDeletePending" },
  },
];

describe("the step for a VolumeGroupSnapshot", () => {
  it.each(cases)("$name", ({ given, expected }) => {
    const step = decideGroupGoal(observed(given));
    expect(step).toMatchObject(expected);
  });
});

describe("the step for a VolumeGroupSnapshotContent", () => {
  const of = { groupHandle: "gh", snapshotHandles: ["h"] };
  const steps: readonly {
    readonly name: string;
    readonly given: Change;
    readonly expected: ContentStep<GroupHandles>;
  }[] = [
    { name: "a new one is created", given: {}, expected: { kind: "create" } },
    {
      name: "one that is not ready is asked for again",
      given: { status: { ...made, readyToUse: false } },
      expected: { kind: "create" },
    },
    { name: "one that is ready is left alone", given: { status: made }, expected: { kind: "none" } },
    {
      name: "a mark that is left over goes",
      given: { metadata: { annotations: beingCreated }, status: made },
      expected: { kind: "settleCreation" },
    },
    {
      name: "one that exists is looked at",
      given: { spec: { source: handles } },
      expected: { kind: "check", handle: of },
    },
    {
      name: "deleted: with all of its snapshots",
      given: { metadata: { ...gone, annotations: beingDeleted }, status: made },
      expected: { kind: "delete", handle: of },
    },
    {
      name: "deleted, in v1beta1",
      given: {
        metadata: { ...gone, annotations: beingDeleted },
        status: {
          volumeGroupSnapshotHandle: "gh",
          volumeSnapshotHandlePairList: [{ volumeHandle: "v", snapshotHandle: "h" }],
        },
      },
      expected: { kind: "delete", handle: of },
    },
    {
      name: "deleted while uncertain: asked for again",
      given: { metadata: { ...gone, annotations: { ...beingDeleted, ...beingCreated } } },
      expected: { kind: "create" },
    },
    {
      name: "deleted before it was made",
      given: { metadata: { ...gone, annotations: beingDeleted } },
      expected: { kind: "letGo" },
    },
    {
      name: "deleted, to be retained",
      given: {
        metadata: { ...gone, annotations: beingDeleted },
        spec: { deletionPolicy: "Retain" },
        status: made,
      },
      expected: { kind: "letGo" },
    },
    {
      name: "deleted before its group snapshot",
      given: { metadata: gone, status: made },
      expected: { kind: "none" },
    },
    {
      name: "deleted, never bound",
      given: {
        metadata: gone,
        spec: { source: handles, volumeGroupSnapshotRef: { name: "g", namespace: "n" } },
      },
      expected: { kind: "delete", handle: of },
    },
  ];
  it.each(steps)("$name", ({ given, expected }) => {
    expect(decideGroupContentStep(aContent(given))).toEqual(expected);
  });
});
