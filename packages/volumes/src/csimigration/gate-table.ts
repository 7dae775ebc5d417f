/**
 * The migration gates as a table: what each is at a version of Kubernetes, and when it changed.
 * Source: docs/behaviour/migration-controllers.md D1.
 */
import { globalMigrationGate, migrationGates } from "@longshore/translation";
import { type GateHistory, gateHistoryOf, unregisterGateOf, volumeGatesFor } from "./volume-gates.ts";

/** One gate at one version of Kubernetes. */
export interface GateRow {
  readonly gate: string;
  /** In-tree name of the plugin that it belongs to; left out for the master switch. */
  readonly plugin?: string;
  /** `notYet` and `removed`: this version refuses the name. `ownOnly`: Longshore has it, Kubernetes never did. */
  readonly stage: "notYet" | "alpha" | "beta" | "GA" | "deprecated" | "removed" | "ownOnly";
  /** The value where it is not set; of a gate that was removed, what the version does for good. */
  readonly default: boolean;
  /** No other value is taken. */
  readonly locked: boolean;
  /** The minor versions of Kubernetes 1 at which it changed. */
  readonly history: GateHistory;
}

/**
 * The master switch and the gates of one plugin, by its in-tree name, or of all plugins.
 * @throws FeatureGateError for text that is not a version
 */
export function gateTable(version: string, inTreePluginName?: string): readonly GateRow[] {
  const specs = volumeGatesFor(version);
  const minor = Number(/^v?1\.(\d+)/.exec(version)?.[1]);
  const row = (gate: string, plugin?: string): GateRow => {
    const history = gateHistoryOf(gate) ?? {};
    const spec = specs[gate];
    return {
      gate,
      ...(plugin === undefined ? {} : { plugin }),
      stage: presenceAt(history, minor) ?? spec?.stage ?? "alpha",
      default: spec?.default === true,
      locked: spec?.locked === true,
      history,
    };
  };
  const plugins = migrationGates.filter(
    ({ inTreeName }) => inTreePluginName === undefined || inTreeName === inTreePluginName,
  );
  return [
    row(globalMigrationGate),
    ...plugins.flatMap((gates) =>
      [gates.gate, gates.completeGate, unregisterGateOf(gates)].map((gate) => row(gate, gates.inTreeName)),
    ),
  ];
}

/** What a version says of a gate that it does not have; undefined where it has it. */
function presenceAt(history: GateHistory, minor: number): "notYet" | "removed" | "ownOnly" | undefined {
  const first = history.alpha ?? history.beta;
  if (first === undefined) return "ownOnly";
  if (minor < first) return "notYet";
  return history.removed !== undefined && minor >= history.removed ? "removed" : undefined;
}
