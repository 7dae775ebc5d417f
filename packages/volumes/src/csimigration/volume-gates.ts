/**
 * The feature gates of the volume subsystem and which of them belong to which in-tree plugin.
 * Source: docs/behaviour/migration-controllers.md D1.
 */
import { FeatureGateError, type FeatureGateSpec, type FeatureGates } from "@longshore/runtime";
import { globalMigrationGate, type MigrationGates, migrationGates } from "@longshore/translation";

/** The minor versions of Kubernetes 1 at which a gate has changed; left out: it never has. */
export interface GateHistory {
  /** From here on there is such a gate; left out for one that began as beta, and for one of Longshore alone. */
  readonly alpha?: number;
  readonly beta?: number;
  readonly onByDefault?: number;
  readonly ga?: number;
  readonly locked?: number;
  readonly deprecated?: number;
  /** From here on there is no such gate, and it has its last value for good. */
  readonly removed?: number;
}

const history: Readonly<Record<string, GateHistory>> = {
  CSIMigration: { alpha: 14, beta: 17, onByDefault: 17, ga: 25, locked: 25, removed: 27 },
  CSIMigrationAWS: { alpha: 14, beta: 17, onByDefault: 23, ga: 25, locked: 25, removed: 27 },
  CSIMigrationGCE: { alpha: 14, beta: 17, onByDefault: 23, ga: 25, locked: 25, removed: 28 },
  CSIMigrationAzureDisk: { alpha: 15, beta: 19, onByDefault: 23, ga: 24, locked: 25, removed: 27 },
  CSIMigrationAzureFile: { alpha: 15, beta: 21, onByDefault: 24, ga: 26, locked: 27, removed: 30 },
  CSIMigrationOpenStack: { alpha: 14, beta: 18, onByDefault: 21, ga: 24, locked: 24, removed: 26 },
  CSIMigrationvSphere: { alpha: 18, beta: 19, onByDefault: 25, ga: 26, locked: 27, removed: 29 },
  CSIMigrationPortworx: { alpha: 23, beta: 25, onByDefault: 31, ga: 33, locked: 33, removed: 36 },
  CSIMigrationRBD: { alpha: 23, deprecated: 28, removed: 31 },
  ...Object.fromEntries(migrationGates.map(({ completeGate }) => [completeGate, { alpha: 17, removed: 21 }])),
  CSIMigrationvSphereComplete: { beta: 19, removed: 22 },
  ...Object.fromEntries(migrationGates.map((gates) => [unregisterGateOf(gates), { alpha: 21, removed: 31 }])),
  // These two joined later, and have Complete gates in Longshore alone.
  CSIMigrationPortworxComplete: {},
  CSIMigrationRBDComplete: {},
  InTreePluginPortworxUnregister: { alpha: 23, removed: 36 },
  InTreePluginRBDUnregister: { alpha: 23, removed: 31 },
  // Kubernetes has it on from 1.31 on, Longshore for each version: without it a disk outlives its volume.
  HonorPVReclaimPolicy: { beta: 0, onByDefault: 0, ga: 33, locked: 33 },
};

/** The version whose gates Longshore has where none is asked for. */
const ownMinor = 20;

/** Registry for `featureGates()`: stages and defaults of Kubernetes 1.20, and what came later as alpha, off. */
export const volumeGates: Readonly<Record<string, FeatureGateSpec>> = gatesAt(ownMinor);

/**
 * The registry with stages and defaults of a Kubernetes version, e.g. `1.25`. It always has every gate: one that this version
 * does not have yet is alpha and off, one that it no longer has is locked to its last value.
 *
 * @throws FeatureGateError for text that is not a version
 */
export function volumeGatesFor(version: string): Readonly<Record<string, FeatureGateSpec>> {
  const minor = /^v?1\.(\d{1,3})(\.|$)/.exec(version)?.[1];
  if (minor === undefined) throw new FeatureGateError(`Kubernetes version "${version}": write 1.<minor>`);
  return gatesAt(Number(minor));
}

/** When the gate changed; undefined for a name that is no gate of the volume subsystem. */
export function gateHistoryOf(name: string): GateHistory | undefined {
  return history[name];
}

function gatesAt(minor: number): Readonly<Record<string, FeatureGateSpec>> {
  return Object.fromEntries(Object.entries(history).map(([name, gate]) => [name, gateAt(gate, minor)]));
}

function gateAt(gate: GateHistory, minor: number): FeatureGateSpec {
  const has = (since: number | undefined): boolean => since !== undefined && minor >= since;
  return {
    default: has(gate.onByDefault),
    stage: stageAt(gate, has),
    ...((has(gate.locked) || has(gate.removed)) && { locked: true }),
  };
}

function stageAt(gate: GateHistory, has: (since: number | undefined) => boolean): FeatureGateSpec["stage"] {
  if (has(gate.deprecated)) return "deprecated";
  if (has(gate.ga)) return "GA";
  return has(gate.beta) ? "beta" : "alpha";
}

/** The gates of an in-tree plugin, or undefined for a plugin that cannot migrate. */
export function gatesOfPlugin(inTreePluginName: string): MigrationGates | undefined {
  return migrationGates.find((gates) => gates.inTreeName === inTreePluginName);
}

/** The gate that takes an in-tree plugin away whether it migrates or not, e.g. `InTreePluginAWSUnregister`. */
export function unregisterGateOf({ gate }: Pick<MigrationGates, "gate">): string {
  return `InTreePlugin${gate.slice(globalMigrationGate.length)}Unregister`;
}

/**
 * Gates that depend on others which are off, one sentence each; to be logged as warnings at start,
 * never fatal. Source: docs/behaviour/volume-plugins.md 7.1.
 */
export function gateDependencyWarnings(gates: FeatureGates): readonly string[] {
  const warnings: string[] = [];
  for (const { gate, completeGate } of migrationGates) {
    if (gates.enabled(gate) && !gates.enabled(globalMigrationGate)) {
      warnings.push(`enabling ${gate} requires ${globalMigrationGate} to be enabled`);
    }
    if (gates.enabled(completeGate) && !gates.enabled(gate)) {
      warnings.push(`enabling ${completeGate} requires ${gate} to be enabled`);
    }
  }
  return warnings;
}

/**
 * The gates as the attach/detach controller sees them in the OpenShift mode: migration of the
 * listed plugins is on, so that the node alone decides; everything else, and everyone else in the
 * process, keeps the given gates. Source: docs/behaviour/migration-controllers.md B2.
 */
export function withForcedMigration(gates: FeatureGates, inTreePluginNames: readonly string[]): FeatureGates {
  const forced = new Map<string, boolean>([[globalMigrationGate, true]]);
  for (const name of inTreePluginNames) {
    const own = gatesOfPlugin(name);
    if (own === undefined) continue;
    forced.set(own.gate, true);
    forced.set(own.completeGate, false); // It would take the decision away from the node.
  }
  return { enabled: (name) => forced.get(name) ?? gates.enabled(name) };
}
