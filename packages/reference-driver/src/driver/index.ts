/** The reference CSI driver. */
export { providerOfDriver } from "./driver-kinds.ts";
export { type FaultName, faultDescriptions, faultNames, isFaultName } from "./faults/index.ts";
export { createReferenceDriver } from "./reference-driver.ts";
export { type StandaloneDriverOptions, startStandaloneDriver } from "./standalone-driver.ts";
