import type { VolumeSnapshotContent } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { type ContentStep, decideContentStep, isOfDriver } from "./content-step.ts";

const finalizer = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
const beingCreated = { "snapshot.storage.kubernetes.io/volumesnapshot-being-created": "yes" };
const beingDeleted = { "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted": "yes" };
const ofGroup = { "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-handle": "g" };

interface Given {
  readonly deleting?: boolean;
  readonly held?: boolean;
  readonly annotations?: Record<string, string>;
  readonly spec?: Partial<VolumeSnapshotContent["spec"]>;
  readonly status?: VolumeSnapshotContent["status"];
}

function aContent({ deleting = false, held = true, annotations = {}, spec = {}, status }: Given) {
  const content: VolumeSnapshotContent = {
    metadata: {
      name: "c",
      annotations,
      finalizers: held ? [finalizer] : ["example.com/other"],
      ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: {
      driver: "d",
      deletionPolicy: "Delete",
      source: { volumeHandle: "v" },
      volumeSnapshotRef: { name: "s", namespace: "n", uid: "u" },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
  return content;
}

const existing = { source: { snapshotHandle: "h" } };
const unbound = { ...existing, volumeSnapshotRef: { name: "s", namespace: "n" } };
const made = { snapshotHandle: "h", readyToUse: true };
const unready = { snapshotHandle: "h", readyToUse: false };

type Case = readonly [name: string, given: Given, step: ContentStep<string>, canLook?: boolean];
const cases: readonly Case[] = [
  ["a new one is created", {}, { kind: "create" }],
  ["one that is not ready is asked for again", { status: unready }, { kind: "create" }],
  ["one that failed is asked for again", { status: { error: { message: "m" } } }, { kind: "create" }],
  ["one that is ready is left alone", { status: made }, { kind: "none" }],
  ["a mark that is left over goes", { annotations: beingCreated, status: made }, { kind: "settleCreation" }],
  [
    "a mark goes also where the snapshot is not ready",
    { annotations: beingCreated, status: unready },
    { kind: "settleCreation" },
  ],
  ["one that exists is looked at", { spec: existing }, { kind: "check", handle: "h" }],
  ["one that exists is looked at before it is bound", { spec: unbound }, { kind: "check", handle: "h" }],
  ["one of a group is never created alone", { annotations: ofGroup }, { kind: "none" }],
  [
    "one of a group is looked at",
    { annotations: ofGroup, status: { ...unready, volumeGroupSnapshotHandle: "g" } },
    { kind: "check", handle: "h" },
  ],
  [
    "one of a group whose driver cannot be asked waits for its group",
    { annotations: ofGroup, status: { ...unready, volumeGroupSnapshotHandle: "g" } },
    { kind: "none" },
    false,
  ],
  [
    "deleted with its snapshot: at the driver, too",
    { deleting: true, annotations: beingDeleted, status: made },
    { kind: "delete", handle: "h" },
  ],
  [
    "deleted before it was made: there is nothing at the driver",
    { deleting: true, annotations: beingDeleted },
    { kind: "letGo" },
  ],
  [
    "deleted while the outcome is uncertain: asked for again",
    { deleting: true, annotations: { ...beingDeleted, ...beingCreated } },
    { kind: "create" },
  ],
  [
    "deleted just after it was made: the mark goes first",
    { deleting: true, annotations: { ...beingDeleted, ...beingCreated }, status: made },
    { kind: "settleCreation" },
  ],
  ["deleted before its snapshot: it stays", { deleting: true, status: made }, { kind: "none" }],
  [
    "deleted, and to be retained",
    { deleting: true, annotations: beingDeleted, spec: { deletionPolicy: "Retain" }, status: made },
    { kind: "letGo" },
  ],
  [
    "one that exists, deleted before it was looked at: the driver's is deleted nevertheless",
    { deleting: true, annotations: beingDeleted, spec: existing },
    { kind: "delete", handle: "h" },
  ],
  [
    "one that exists and was never bound goes at once",
    { deleting: true, spec: unbound },
    { kind: "delete", handle: "h" },
  ],
  [
    "one of a group is deleted with its group",
    {
      deleting: true,
      annotations: { ...beingDeleted, ...ofGroup },
      status: { ...made, volumeGroupSnapshotHandle: "g" },
    },
    { kind: "letGo" },
  ],
  [
    "what is not held is not ours to delete",
    { deleting: true, held: false, annotations: beingDeleted, status: made },
    { kind: "none" },
  ],
];

describe("the step for a VolumeSnapshotContent", () => {
  it.each(cases.map(([name, ...rest]) => ({ name, rest })))(
    "$name",
    ({ rest: [given, step, canLook = true] }) => {
      expect(decideContentStep(aContent(given), canLook)).toEqual(step);
    },
  );
});

describe("whose content it is", () => {
  const classOf = (driver: string) => () => ({ driver, deletionPolicy: "Delete" as const });
  const none = () => undefined;
  it.each([
    { name: "of the driver", spec: {}, classes: none, expected: true },
    { name: "of another driver", spec: { driver: "other" }, classes: none, expected: false },
    {
      name: "of a class of the driver",
      spec: { volumeSnapshotClassName: "c" },
      classes: classOf("d"),
      expected: true,
    },
    {
      name: "of a class of another driver",
      spec: { volumeSnapshotClassName: "c" },
      classes: classOf("other"),
      expected: false,
    },
    {
      name: "of a class that is gone",
      spec: { volumeSnapshotClassName: "c" },
      classes: none,
      expected: true,
    },
    { name: "of nothing at all", spec: { source: {} }, classes: none, expected: false },
  ])("$name", ({ spec, classes, expected }) => {
    expect(isOfDriver(aContent({ spec }), "d", classes)).toBe(expected);
  });
});
