/**
 * The feature gates of the volume subsystem and which of them belong to which in-tree plugin.
 * Defaults and stages are those of Kubernetes 1.20 (docs/behaviour/migration-controllers.md D1); the two
 * plugins that joined later start as alpha, off.
 */
import type { FeatureGateSpec, FeatureGates } from "@longshore/runtime";
import { globalMigrationGate, type MigrationGates, migrationGates } from "@longshore/translation";

const off = (stage: FeatureGateSpec["stage"]): FeatureGateSpec => ({ default: false, stage });

/** Registry for `featureGates()`. */
export const volumeGates: Readonly<Record<string, FeatureGateSpec>> = {
  CSIMigration: { default: true, stage: "beta" },
  CSIMigrationAWS: off("beta"),
  CSIMigrationAWSComplete: off("alpha"),
  CSIMigrationGCE: off("beta"),
  CSIMigrationGCEComplete: off("alpha"),
  CSIMigrationAzureDisk: off("beta"),
  CSIMigrationAzureDiskComplete: off("alpha"),
  CSIMigrationAzureFile: off("alpha"),
  CSIMigrationAzureFileComplete: off("alpha"),
  CSIMigrationOpenStack: off("beta"),
  CSIMigrationOpenStackComplete: off("alpha"),
  CSIMigrationvSphere: off("beta"),
  CSIMigrationvSphereComplete: off("beta"),
  CSIMigrationPortworx: off("alpha"),
  CSIMigrationPortworxComplete: off("alpha"),
  CSIMigrationRBD: off("alpha"),
  CSIMigrationRBDComplete: off("alpha"),
  // Of a later Kubernetes, which has it on: without it a disk outlives its volume.
  HonorPVReclaimPolicy: { default: true, stage: "beta" },
};

/** The gates of an in-tree plugin, or undefined for a plugin that cannot migrate. */
export function gatesOfPlugin(inTreePluginName: string): MigrationGates | undefined {
  return migrationGates.find((gates) => gates.inTreeName === inTreePluginName);
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
