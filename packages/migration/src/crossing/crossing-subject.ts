/** What a crossing moves: one in-tree plugin, its driver and gates, and how its volumes are recognised. */
import {
  attacherFinalizer,
  csiUniqueVolumeName,
  provisionerFinalizer,
  provisioningFinalizer,
} from "@longshore/storage";
import { globalMigrationGate, type MigrationGates, migrationGates } from "@longshore/translation";

/** The plugin of a crossing. */
export interface CrossingSubject extends MigrationGates {
  /** e.g. `aws-ebs`. */
  readonly shortName: string;
}

/** The name given is not a plugin that can be migrated. */
export class UnknownPluginError extends Error {
  override readonly name = "UnknownPluginError";
}

/** Finds a plugin by its short name (`aws-ebs`), in-tree name or driver name. @throws UnknownPluginError */
export function crossingSubject(name: string): CrossingSubject {
  const all = allSubjects();
  const found = all.find((s) => [s.shortName, s.inTreeName, s.driverName].includes(name));
  if (found !== undefined) return found;
  throw new UnknownPluginError(
    `\`plugin\`: "${name}" is not a plugin that can be migrated; choose one of ${all.map((s) => s.shortName).join(", ")}`,
  );
}

/** Every plugin that can be migrated. */
export function allSubjects(): readonly CrossingSubject[] {
  return migrationGates.map((gates) => ({
    ...gates,
    shortName: gates.inTreeName.slice(gates.inTreeName.indexOf("/") + 1),
  }));
}

/** The gate values that turn the plugin's migration on or off. */
export function gateValuesFor(subject: CrossingSubject, direction: CrossingDirection) {
  // Going back the global gate stays on: without it no other plugin could be on CSI.
  return direction === "migrate"
    ? { [globalMigrationGate]: true, [subject.gate]: true }
    : { [subject.gate]: false };
}

/** Over to the driver, or back to the in-tree plugin. */
export type CrossingDirection = "migrate" | "rollback";

/** True when a unique volume name, as in a node's status, is one of the plugin's in either form. */
export function isVolumeOf(subject: CrossingSubject, uniqueVolumeName: string): boolean {
  return (
    uniqueVolumeName.startsWith(`${subject.inTreeName}/`) ||
    uniqueVolumeName.startsWith(csiUniqueVolumeName(subject.driverName, ""))
  );
}

/** Finalizers that the driver's sidecars put on PVs and claims. */
export function sidecarFinalizers(subject: CrossingSubject): readonly string[] {
  return [attacherFinalizer(subject.driverName), provisionerFinalizer, provisioningFinalizer];
}
