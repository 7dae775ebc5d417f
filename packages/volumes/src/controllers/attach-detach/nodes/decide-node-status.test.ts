/** When a node's status is written (docs/behaviour/controllers.md A8). */
import type { Node } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { uncertainVolumesAnnotation } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { decideNodeStatus, type NodeStatusStep, type ObservedNodeStatus } from "./decide-node-status.ts";

const decide = pureDecision(decideNodeStatus);
const listed = [{ name: "x/y/1", devicePath: "/dev/a" }];

function node(volumesAttached: readonly { name: string; devicePath: string }[], record?: string): Node {
  const annotations = record === undefined ? {} : { [uncertainVolumesAnnotation]: record };
  return { metadata: { name: "n", annotations }, status: { volumesAttached: [...volumesAttached] } };
}

function observed(fields: Partial<ObservedNodeStatus> = {}): ObservedNodeStatus {
  const report = { version: 4, listed, record: undefined };
  return { nodeName: "n", node: node(listed), report, isDirty: false, ...fields };
}

const cases: readonly (readonly [string, Partial<ObservedNodeStatus>, NodeStatusStep["step"]])[] = [
  ["says what it should", {}, "settle"],
  ["the report has changed, whatever the cache says", { isDirty: true }, "write"],
  ["another writer took an entry away", { node: node([]) }, "write"],
  ["another writer added an entry", { node: node([...listed, { name: "x/y/2", devicePath: "" }]) }, "write"],
  ["another device", { node: node([{ name: "x/y/1", devicePath: "/dev/b" }]) }, "write"],
  ["a record that is not ours", { node: node(listed, "x/y/3") }, "write"],
  ["a record was lost", { report: { version: 4, listed, record: "x/y/3" } }, "write"],
  ["the same record", { node: node(listed, "r"), report: { version: 4, listed, record: "r" } }, "settle"],
  ["no such node, nothing to write", { node: undefined }, "settle"],
  ["no such node, and something waits for the write", { node: undefined, isDirty: true }, "countAsWritten"],
];

describe("the decision on one node's status", () => {
  it.each(cases)("%s", (_rule, fields, step) => {
    expect(decide(observed(fields)).step).toBe(step);
  });

  it("names the version that is written", () => {
    const report = observed().report;
    expect(decide(observed({ isDirty: true }))).toEqual({ step: "write", nodeName: "n", report });
    expect(decide(observed({ isDirty: true, node: undefined }))).toMatchObject({ version: 4 });
  });
});
