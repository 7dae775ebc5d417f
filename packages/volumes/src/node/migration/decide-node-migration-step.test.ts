/** What comes next in a node's migration, as a table. Source: docs/behaviour/node-agent.md 2.4, docs/decisions/0019. */
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import {
  decideNodeMigrationStep,
  type ObservedMigration,
  type ObservedPlugin,
  recheckMs,
} from "./decide-node-migration-step.ts";

const decide = pureDecision(decideNodeMigrationStep);
const inTreeName = "kubernetes.io/x";
const none = { "in-tree": [], csi: [] };
const toCsi: ObservedPlugin = {
  inTreeName,
  wanted: "csi",
  current: "in-tree",
  isFree: true,
  isSuspended: true,
  heldBy: [],
  left: { names: none, isAnnounced: true },
};
const back: ObservedPlugin = {
  ...toCsi,
  wanted: "in-tree",
  current: "csi",
  left: { names: none, isAnnounced: false },
};
const there: ObservedPlugin = { ...toCsi, current: "csi", isSuspended: false, left: undefined };
const node = (plugin: ObservedPlugin, change: Partial<ObservedMigration> = {}): ObservedMigration => ({
  nowMs: 1000,
  retryAtMs: 0,
  isInitialised: true,
  written: plugin.current === "csi" ? [inTreeName] : [],
  mayListOthers: false,
  mayBeAnnounced: false,
  plugins: [plugin],
  failure: undefined,
  ...change,
});
const start = { isInitialised: false, written: undefined, mayBeAnnounced: true };
const apply = (path: string, heldBy: readonly string[] = [], again = false) => ({
  step: "apply",
  verdicts: [{ inTreeName, path, heldBy }],
  recheckMs: again ? recheckMs : undefined,
});
const leftInTree = { names: { "in-tree": ["v"], csi: [] }, isAnnounced: false };
const error = new Error("no");

describe("the step of a node's migration", () => {
  it.each<[string, ObservedMigration, object]>([
    ["nothing is to be done on the way that is wanted", node(there), apply("csi")],
    [
      "a plugin with managed volumes is held",
      node({ ...toCsi, isFree: false, heldBy: ["v"] }),
      apply("in-tree", ["v"], true),
    ],
    [
      "a free one is suspended before anything is looked at",
      node({ ...toCsi, isSuspended: false }),
      { step: "suspend", inTreeName },
    ],
    ["then what is left is looked at", node({ ...toCsi, left: undefined }), { step: "look", inTreeName }],
    [
      "what is left holds it, unannounced",
      node({ ...toCsi, left: leftInTree }),
      apply("in-tree", ["v"], true),
    ],
    [
      "a change to CSI is announced before it is decided",
      node({ ...toCsi, left: { names: none, isAnnounced: false } }),
      { step: "announce", inTreeName },
    ],
    [
      "what the answer to the announcement shows holds it: the announcement ends",
      node({ ...toCsi, left: { ...leftInTree, isAnnounced: true } }, { mayBeAnnounced: true }),
      { step: "endAnnouncement" },
    ],
    [
      "nothing left: the annotation is written",
      node(toCsi, { mayBeAnnounced: true }),
      { step: "writeAnnotation", migrated: [inTreeName] },
    ],
    [
      "then the announcement ends",
      node(toCsi, { mayBeAnnounced: true, written: [inTreeName] }),
      { step: "endAnnouncement" },
    ],
    ["then the way is in force", node(toCsi, { written: [inTreeName] }), apply("csi")],
    ["the way back needs no announcement", node(back), { step: "writeAnnotation", migrated: [] }],
    [
      "and is held by CSI's volumes",
      node({ ...back, left: { names: { "in-tree": [], csi: ["c"] }, isAnnounced: false } }),
      apply("csi", ["c"], true),
    ],
    [
      "lists of attached volumes that may be older than what is mounted are corrected before the annotation",
      node(there, { mayListOthers: true, mayBeAnnounced: true, written: undefined }),
      { step: "correctLists" },
    ],
    [
      "an annotation whose write is uncertain is written again, also to stay",
      node(
        { ...back, left: { names: { "in-tree": [], csi: ["c"] }, isAnnounced: false } },
        { written: undefined },
      ),
      { step: "writeAnnotation", migrated: [inTreeName] },
    ],
    [
      "volumes that came into hand meanwhile hold it",
      node({ ...toCsi, isFree: false }),
      apply("in-tree", [], true),
    ],
    [
      "at the start the annotation is written in any case",
      node(there, start),
      { step: "writeAnnotation", migrated: [inTreeName] },
    ],
    [
      "and an announcement of an earlier agent ends",
      node(there, { ...start, written: [inTreeName] }),
      { step: "endAnnouncement" },
    ],
    [
      "at the start nothing is managed: disk and objects decide",
      node({ ...toCsi, isFree: false, left: undefined }, start),
      { step: "look", inTreeName },
    ],
    [
      "without a CSINode the volumes say which way the node is on",
      node(
        { ...toCsi, current: undefined, left: leftInTree },
        { ...start, written: [], mayBeAnnounced: false },
      ),
      apply("in-tree", ["v"], true),
    ],
    ["a failure is recorded", node(there, { failure: { error } }), { step: "recordFailure", error }],
    ["and is not repeated before its time", node(toCsi, { retryAtMs: 1400 }), { step: "wait", ms: 400 }],
  ])("%s", (_name, observed, step) => {
    expect(decide(observed)).toEqual(step);
  });
});
