import type { FeatureGateSpec } from "@longshore/runtime";
import { migrationGates } from "@longshore/translation";
import { describe, expect, it } from "vitest";
import { type FeatureGate, selectionOf } from "./feature-gate.ts";
import { type GateReader, gatesOfSelection } from "./gates-of-selection.ts";

const off: FeatureGateSpec = { default: false, stage: "beta" };
/** Kubernetes 1.20: the master switch is on, all others are off. */
const release20 = {
  CSIMigration: { default: true, stage: "beta" },
  ...Object.fromEntries(migrationGates.map(({ gate }) => [gate, off])),
  CSIStorageCapacity: off,
  GenericEphemeralVolume: { default: true, stage: "beta" },
} as const satisfies Readonly<Record<string, FeatureGateSpec>>;
/** As all plugins are GA: one gate is on and locked, the others are gone. */
const released = { CSIMigrationAWS: { default: true, stage: "GA", locked: true } } as const;
/** The plugins of the tech preview of 4.8 (B4). */
const plugins = ["kubernetes.io/aws-ebs", "kubernetes.io/cinder"];

const ebsAndCinder = { CSIMigrationAWS: true, CSIMigrationOpenStack: true };
const allPlugins = Object.fromEntries(migrationGates.map(({ gate }) => [gate, true]));

type Custom = NonNullable<FeatureGate["spec"]>["customNoUpgrade"];

function gates(
  featureSet: string,
  reader: GateReader,
  knownGates: Readonly<Record<string, FeatureGateSpec>> = release20,
  customNoUpgrade?: Custom,
) {
  const spec = { featureSet, ...(customNoUpgrade === undefined ? {} : { customNoUpgrade }) };
  return gatesOfSelection(selectionOf({ spec }), reader, { knownGates, plugins });
}

describe("the gates of a set, for each reader", () => {
  it.each<[section: string, set: string, controlPlane: object, kubelet: object]>([
    ["B3", "", {}, {}],
    ["B3", "TechPreviewNoUpgrade", ebsAndCinder, ebsAndCinder],
    ["B3", "CSIMigration", ebsAndCinder, ebsAndCinder],
    // The machine-config-operator ignores the set of the control plane.
    ["B5", "CSIMigrationControlPlane", allPlugins, {}],
    ["B5", "CSIMigrationNode", allPlugins, allPlugins],
  ])("%s: %j", (_, set, controlPlane, kubelet) => {
    expect(gates(set, "control plane")).toEqual(controlPlane);
    expect(gates(set, "kubelet")).toEqual(kubelet);
  });

  it.each(["TechPreviewNoUpgrade", "CSIMigration", "CSIMigrationControlPlane", "CSIMigrationNode"])(
    "B4: %s is empty once all plugins are GA",
    (set) => {
      expect(gates(set, "control plane", released)).toEqual({});
      expect(gates(set, "kubelet", released)).toEqual({});
    },
  );

  it.each<[string, Custom, object]>([
    ["B3: one plugin alone", { enabled: ["CSIMigrationAWS"] }, { CSIMigrationAWS: true }],
    [
      "B3: the spelling of the enhancement",
      { enabled: ["CSIMigrationCinder"] },
      { CSIMigrationOpenStack: true },
    ],
    [
      "B3: a gate that is on is turned off",
      { disabled: ["GenericEphemeralVolume"] },
      { GenericEphemeralVolume: false },
    ],
    ["B6: its default is not written", { enabled: ["CSIMigration"], disabled: ["CSIMigrationGCE"] }, {}],
    [
      "B6: sorted",
      { enabled: ["CSIStorageCapacity", "CSIMigrationAWS"] },
      { CSIMigrationAWS: true, CSIStorageCapacity: true },
    ],
    ["B6: lists that are null", { enabled: null, disabled: null }, {}],
    ["B6: no lists", null, {}],
  ])("%s", (_, custom, expected) => {
    const found = gates("CustomNoUpgrade", "kubelet", release20, custom);
    expect(found).toEqual(expected);
    expect(Object.keys(found)).toEqual(Object.keys(expected));
  });

  it("B6: lists beside another set are ignored", () => {
    expect(gates("", "control plane", release20, { enabled: ["CSIMigrationAWS"] })).toEqual({});
  });
});
