/** Seeded simulation of crossings, with the contract checked at every step. */

export { defaultFaultRates, type FaultRates } from "./faults.ts";
export { type CloudFaultRates, defaultCloudFaultRates } from "./faulty-cloud.ts";
export { type SimulationOptions, type SimulationResult, simulateCrossing } from "./simulate-crossing.ts";
export { violationTrace } from "./violation-trace.ts";
