/**
 * How far a shoot's migration is, and which gates that turns on. Pure. Source: docs/behaviour/migration-controllers.md A6, A7.
 *
 *     phase       control plane                             kubelets of new machines
 *     in-tree     cloud flags, no gate                      --cloud-provider=PROVIDER, no gate
 *     in process  cloud flags, CSIMigration, …<Provider>    --cloud-provider=external, all three gates
 *     complete    no cloud flag, all three gates            the same
 */
import {
  type Cluster,
  type CSIConditions,
  checkCSIConditions,
  decodeShoot,
} from "@longshore/migration/gardener";
import { globalMigrationGate } from "@longshore/translation";
import { gateTable } from "@longshore/volumes";
import type { Provider } from "./providers.ts";

/** See above. */
export type Phase = "in-tree" | "in process" | "complete";

/** The phase that follows from the conditions. */
export function phaseOf({ useCSI, csiMigrationComplete }: CSIConditions): Phase {
  if (!useCSI) return "in-tree";
  return csiMigrationComplete ? "complete" : "in process";
}

/** What the webhook needs of a Cluster. */
export interface ShootState {
  readonly phase: Phase;
  readonly providerType: string;
  readonly kubernetesVersion: string;
}

/** @throws ShootError or VersionError for a Cluster that is malformed: nothing may be configured from it */
export function shootStateOf(cluster: Cluster, csiMigrationVersion: string): ShootState {
  const { providerType, kubernetesVersion } = decodeShoot(cluster);
  return {
    phase: phaseOf(checkCSIConditions(cluster, csiMigrationVersion)),
    providerType,
    kubernetesVersion,
  };
}

/** The migration gates that are on: of those only which the release has, since a component does not start with another. */
export function gatesOfPhase(
  phase: Phase,
  kubernetesVersion: string,
  { gates }: Provider,
): readonly string[] {
  if (phase === "in-tree") return [];
  const missing = ["notYet", "removed", "ownOnly"];
  const known = gateTable(kubernetesVersion).filter(({ stage }) => !missing.includes(stage));
  const exists = (gate: string) => known.some((row) => row.gate === gate);
  const inProcess = [globalMigrationGate, ...gates.map(({ gate }) => gate)];
  const complete = phase === "complete" ? gates.map((one) => lastGate(one, exists)) : [];
  return [...inProcess, ...complete].filter(exists);
}

/** The gates that are the webhook's: of these none is on but those of the phase. */
export function ownGates({ gates }: Provider): readonly string[] {
  return [
    globalMigrationGate,
    ...gates.flatMap(({ gate, completeGate }) => [gate, completeGate, unregisterGate(gate)]),
  ];
}

/** Since 1.21 another gate has the place of `CSIMigration<Provider>Complete`. */
function lastGate(
  { gate, completeGate }: { readonly gate: string; readonly completeGate: string },
  exists: (gate: string) => boolean,
): string {
  return exists(completeGate) ? completeGate : unregisterGate(gate);
}

function unregisterGate(gate: string): string {
  return `InTreePlugin${gate.slice(globalMigrationGate.length)}Unregister`;
}
