/** The reference CSI driver. */
export { type FaultName, faultDescriptions, faultNames, isFaultName } from "./faults/index.ts";
export { createReferenceDriver } from "./reference-driver.ts";
export { type StandaloneDriverOptions, startStandaloneDriver } from "./standalone-driver.ts";
