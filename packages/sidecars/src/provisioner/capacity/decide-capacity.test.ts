/** Every step of a pass over capacity objects. */
import type { CSIStorageCapacity, StorageClass, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideCapacity, type ObservedCapacity, type ObservedItem } from "./decide-capacity.ts";

const decide = pureDecision(decideCapacity);

const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "controller", uid: "u" };
const object = {
  metadata: { name: "csisc-1", namespace: "csi", uid: "o", resourceVersion: "1", ownerReferences: [owner] },
  storageClassName: "gp2",
  capacity: "1Gi",
} as Stored<CSIStorageCapacity>;
const unowned = { ...object, metadata: { name: "csisc-1", uid: "o", resourceVersion: "1" } };
const room = { capacity: "1024Mi", maximumVolumeSize: undefined };
const item: ObservedItem = {
  kind: "item",
  item: { key: "gp2 ", storageClass: {} as StorageClass, segments: {} },
  present: object,
  owner,
  room: undefined,
  mayWrite: true,
};
const plan = { items: new Map(), present: new Map(), obsolete: [] };
const obsolete = { kind: "object", object, isObsolete: true, mayWrite: true } as const;

const rows: readonly [name: string, observed: ObservedCapacity, step: string][] = [
  ["the plan", { kind: "plan", plan }, "followPlan"],
  ["a figure", item, "askForRoom"],
  ["the same amount, written otherwise", { ...item, room }, "settle"],
  ["another amount", { ...item, room: { ...room, capacity: "2Gi" } }, "updateObject"],
  [
    "a largest size for the first time",
    { ...item, room: { ...room, maximumVolumeSize: "1Gi" } },
    "updateObject",
  ],
  ["an object without its owner", { ...item, room, present: unowned }, "updateObject"],
  ["an object that needs no owner", { ...item, room, present: unowned, owner: undefined }, "settle"],
  ["no object", { ...item, room, present: undefined }, "createObject"],
  ["no object, and writes are limited", { ...item, room, present: undefined, mayWrite: false }, "awaitTurn"],
  ["nothing to write, and writes are limited", { ...item, room, mayWrite: false }, "settle"],
  ["an object that the plan needs again", { ...obsolete, isObsolete: false }, "settle"],
  ["an object too many", obsolete, "deleteObject"],
  ["an object too many, and writes are limited", { ...obsolete, mayWrite: false }, "awaitTurn"],
];

describe("the steps over capacity objects", () => {
  it.each(rows)("%s", (_, observed, step) => {
    expect(decide(observed).step).toBe(step);
  });
});
