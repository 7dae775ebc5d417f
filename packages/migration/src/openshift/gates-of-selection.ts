/** Which gates a selection turns on and off, for each reader. Source: docs/behaviour/migration-controllers.md B6. */
import type { FeatureGateSpec } from "@longshore/runtime";
import { globalMigrationGate, migrationGates } from "@longshore/translation";
import type { FeatureSelection } from "./feature-gate.ts";

/** What the operator is started with. */
export interface FeatureGateOptions {
  /**
   * `any`: the attach/detach controller is forced (B2), so gates may flip in any order. `two-sets`: it is not, and the
   * administrator goes through the sets of B5.
   */
  readonly order: "any" | "two-sets";
  /** The gates that the release has; a component of it refuses any other name. */
  readonly knownGates: Readonly<Record<string, FeatureGateSpec>>;
  /** In-tree names of the plugins that `TechPreviewNoUpgrade` and `CSIMigration` carry to CSI. */
  readonly plugins: readonly string[];
}

/** Who reads the gates. */
export type GateReader = "control plane" | "kubelet";

/** Gate values by name, sorted. */
export type GateValues = Readonly<Record<string, boolean>>;

/** The gates that `reader` is to be given: those of the release with another value than its default. */
export function gatesOfSelection(
  selection: FeatureSelection,
  reader: GateReader,
  { knownGates, plugins }: Pick<FeatureGateOptions, "knownGates" | "plugins">,
): GateValues {
  const values = valuesOf(selection, reader, plugins).filter(([gate, value]) => {
    const known = Object.hasOwn(knownGates, gate) ? knownGates[gate] : undefined;
    return known !== undefined && known.locked !== true && known.default !== value;
  });
  return Object.fromEntries(values.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Whether a gate carries a plugin to CSI, or is the master switch. */
export function isMigrationGate(gate: string): boolean {
  return gate === globalMigrationGate || migrationGates.some((one) => one.gate === gate);
}

type Value = readonly [gate: string, value: boolean];

function valuesOf(
  { featureSet, enabled, disabled }: FeatureSelection,
  reader: GateReader,
  plugins: readonly string[],
): Value[] {
  switch (featureSet) {
    case "TechPreviewNoUpgrade":
    case "CSIMigration":
      return migrationOf((inTreeName) => plugins.includes(inTreeName));
    case "CSIMigrationControlPlane":
      return reader === "kubelet" ? [] : migrationOf(() => true);
    case "CSIMigrationNode":
      return migrationOf(() => true);
    case "CustomNoUpgrade":
      return [...on(enabled), ...disabled.map((gate) => [gate, false] as const)];
    default:
      return [];
  }
}

function migrationOf(isChosen: (inTreeName: string) => boolean): Value[] {
  const chosen = migrationGates.filter(({ inTreeName }) => isChosen(inTreeName));
  return on([globalMigrationGate, ...chosen.map(({ gate }) => gate)]);
}

function on(gates: readonly string[]): Value[] {
  return gates.map((gate) => [gate, true] as const);
}
