/** A driver that breaks rules, each on purpose and by name. */
import type { CsiServices } from "@longshore/csi";
import { controllerFaults } from "./controller-faults.ts";
import { createFaults } from "./create-faults.ts";
import type { Fault, FaultContext } from "./fault.ts";
import { type FaultName, faultDescriptions, faultNames, isFaultName } from "./fault-descriptions.ts";
import { identityFaults } from "./identity-faults.ts";
import { metadataFaults } from "./metadata-faults.ts";
import { nodeFaults } from "./node-faults.ts";
import { snapshotFaults } from "./snapshot-faults.ts";

export { type FaultName, faultDescriptions, faultNames, isFaultName };

const faults: Readonly<Record<FaultName, Fault>> = {
  ...identityFaults,
  ...createFaults,
  ...controllerFaults,
  ...snapshotFaults,
  ...metadataFaults,
  ...nodeFaults,
};

/** The services with these rules broken. */
export function withFaults(
  services: CsiServices,
  names: readonly FaultName[],
  context: FaultContext,
): CsiServices {
  return names.reduce((faulty, name) => faults[name](faulty, context), services);
}
