/** Which set follows which. Source: docs/behaviour/migration-controllers.md B6. */
import type { FeatureGateSpec } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { admitSelection, type TransitionFacts } from "./admit-selection.ts";
import { type FeatureGate, selectionOf } from "./feature-gate.ts";
import { type FeatureGateOptions, gatesOfSelection } from "./gates-of-selection.ts";

const off: FeatureGateSpec = { default: false, stage: "beta" };
const knownGates = {
  CSIMigration: { default: true, stage: "beta" },
  CSIMigrationAWS: off,
  CSIMigrationAWSComplete: off,
  CSIMigrationOpenStack: off,
  InTreePluginAWSUnregister: off,
  CSIMigrationGCE: { default: true, stage: "GA", locked: true },
  CSIMigrationAzureDisk: { default: true, stage: "beta" },
} as const;
const options: FeatureGateOptions = {
  order: "any",
  knownGates,
  plugins: ["kubernetes.io/aws-ebs", "kubernetes.io/cinder", "kubernetes.io/gce-pd"],
};
const rolledOut: TransitionFacts = { isControlPlaneRolledOut: true, arePoolsRolledOut: true };
type Lists = NonNullable<NonNullable<FeatureGate["spec"]>["customNoUpgrade"]>;

const select = (featureSet: string, customNoUpgrade: Lists | null = null) =>
  selectionOf({ spec: { featureSet, customNoUpgrade } });

/** "admitted", or the verdict with its reason. */
function verdict(
  from: string,
  to: string,
  order: FeatureGateOptions["order"] = "any",
  facts: TransitionFacts = rolledOut,
): string {
  const admission = admitSelection(select(from), select(to), facts, { ...options, order });
  return "reason" in admission ? `${admission.verdict} ${admission.reason}` : admission.verdict;
}

describe("any order (B6)", () => {
  it.each([
    ["", "CSIMigration", "admitted"],
    ["CSIMigration", "", "admitted"],
    ["", "TechPreviewNoUpgrade", "admitted"],
    ["CSIMigration", "TechPreviewNoUpgrade", "admitted"],
    ["", "CustomNoUpgrade", "admitted"],
    ["TechPreviewNoUpgrade", "TechPreviewNoUpgrade", "admitted"],
    ["TechPreviewNoUpgrade", "", "refused FeatureSetIsFinal"],
    ["TechPreviewNoUpgrade", "CSIMigration", "refused FeatureSetIsFinal"],
    ["CustomNoUpgrade", "", "refused FeatureSetIsFinal"],
    ["CustomNoUpgrade", "TechPreviewNoUpgrade", "refused FeatureSetIsFinal"],
    ["", "LatencySensitive", "refused UnknownFeatureSet"],
    ["", "CSIMigrationControlPlane", "refused UnknownFeatureSet"],
    ["", "CSIMigrationNode", "refused UnknownFeatureSet"],
    ["CSIMigrationNode", "", "admitted"],
  ])("%j to %j: %s", (from, to, expected) => {
    expect(verdict(from, to)).toBe(expected);
  });
});

describe("two sets (B5, B6)", () => {
  const before = { isControlPlaneRolledOut: false, arePoolsRolledOut: true };
  const rolling = { isControlPlaneRolledOut: true, arePoolsRolledOut: false, migratedNodes: [] };
  const clear = { ...rolledOut, migratedNodes: [] };
  const listed = { ...rolledOut, migratedNodes: ["node-1"] };

  it.each<[string, string, TransitionFacts, string]>([
    ["", "CSIMigrationControlPlane", before, "admitted"],
    ["", "CSIMigrationNode", rolledOut, "refused ControlPlaneFirst"],
    ["CSIMigrationControlPlane", "CSIMigrationNode", before, "waits WaitingForControlPlane"],
    ["CSIMigrationControlPlane", "CSIMigrationNode", rolledOut, "admitted"],
    ["CSIMigrationNode", "", clear, "refused NodesFirst"],
    ["CSIMigrationNode", "CustomNoUpgrade", clear, "refused NodesFirst"],
    ["CSIMigrationNode", "CSIMigrationControlPlane", before, "admitted"],
    ["CSIMigrationControlPlane", "", rolling, "waits WaitingForNodes"],
    ["CSIMigrationControlPlane", "", rolledOut, "asksNodes"],
    ["CSIMigrationControlPlane", "", listed, "waits WaitingForNodes"],
    ["CSIMigrationControlPlane", "", clear, "admitted"],
    ["CSIMigrationControlPlane", "CustomNoUpgrade", listed, "waits WaitingForNodes"],
    ["", "CSIMigration", clear, "refused UnknownFeatureSet"],
    ["", "TechPreviewNoUpgrade", clear, "refused UnknownFeatureSet"],
    ["CSIMigration", "", clear, "refused NodesFirst"],
    ["CSIMigration", "CSIMigrationControlPlane", clear, "admitted"],
  ])("%j to %j with %o: %s", (from, to, facts, expected) => {
    expect(verdict(from, to, "two-sets", facts)).toBe(expected);
  });
});

describe("lists of CustomNoUpgrade (B6)", () => {
  const listed = (lists: Lists, order: FeatureGateOptions["order"] = "any") => {
    const custom = select("CustomNoUpgrade", lists);
    const admission = admitSelection(select("CustomNoUpgrade"), custom, rolledOut, { ...options, order });
    return "reason" in admission ? `${admission.reason}: ${admission.message}` : admission.verdict;
  };

  it.each<[Lists, string]>([
    [{ enabled: ["CSIMigrationAWS"] }, "admitted"],
    [{ enabled: ["CSIMigrationCinder"] }, "admitted"],
    [{ disabled: ["CSIMigrationAzureDisk"] }, "admitted"],
    [{ enabled: ["CSIMigrationGCE"] }, "admitted"],
    [
      { enabled: ["CSIMigrationAWSComplete"] },
      "NodeMustDecide: spec.customNoUpgrade: CSIMigrationAWSComplete",
    ],
    [{ disabled: ["CSIMigrationAWSComplete"] }, "admitted"],
    [{ enabled: ["InTreePluginAWSUnregister"] }, "NodeMustDecide: "],
    [{ enabled: ["Sometimes"] }, "UnknownFeatureGate: spec.customNoUpgrade: Sometimes is no gate"],
    [{ disabled: ["constructor"] }, "UnknownFeatureGate: "],
    [{ disabled: ["CSIMigrationGCE"] }, "LockedFeatureGate: "],
    [{ enabled: ["CSIMigrationAWS"], disabled: ["CSIMigrationAWS"] }, "ConflictingFeatureGates: "],
    [{ enabled: ["CSIMigrationCinder"], disabled: ["CSIMigrationOpenStack"] }, "ConflictingFeatureGates: "],
  ])("%j: %s", (lists, expected) => {
    expect(listed(lists).slice(0, expected.length)).toBe(expected);
  });

  it("have no migration gate with the two sets", () => {
    expect(listed({ enabled: ["CSIMigrationAWS"] }, "two-sets")).toContain("MigrationGateNeedsItsSet: ");
  });

  it("count with their set only", () => {
    expect(select("CSIMigration", { enabled: ["Sometimes"] }).enabled).toEqual([]);
  });
});

describe("gates of a set (B6): those with another value than the release's", () => {
  const gatesOf = (selection: ReturnType<typeof select>, reader: "control plane" | "kubelet") =>
    Object.entries(gatesOfSelection(selection, reader, options)).map(([gate, value]) => `${gate}=${value}`);
  const both = ["CSIMigrationAWS=true", "CSIMigrationOpenStack=true"];

  it.each([
    ["", [], []],
    ["CSIMigration", both, both],
    ["TechPreviewNoUpgrade", both, both],
    ["CSIMigrationControlPlane", both, []],
    ["CSIMigrationNode", both, both],
  ])("%j", (set, controlPlane, kubelet) => {
    expect(gatesOf(select(set), "control plane")).toEqual(controlPlane);
    expect(gatesOf(select(set), "kubelet")).toEqual(kubelet);
  });

  it("a custom list", () => {
    const custom = { enabled: ["CSIMigrationAWS", "CSIMigrationGCE"], disabled: ["CSIMigrationAzureDisk"] };
    expect(gatesOf(select("CustomNoUpgrade", custom), "kubelet")).toEqual([
      "CSIMigrationAWS=true",
      "CSIMigrationAzureDisk=false",
    ]);
  });

  it("GA: nothing is left of a set", () => {
    const ga = { default: true, stage: "GA", locked: true } as const;
    const release = { CSIMigration: ga, CSIMigrationAWS: ga };
    for (const set of ["CSIMigration", "CSIMigrationNode", "TechPreviewNoUpgrade"]) {
      expect(gatesOfSelection(select(set), "kubelet", { ...options, knownGates: release })).toEqual({});
    }
  });
});
