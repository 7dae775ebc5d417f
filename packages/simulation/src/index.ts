/** Seeded simulation of crossings, with the contract checked at every step. */

export { badDay, type FaultRates } from "./faults.ts";
export { badCloudDay, type CloudFaultRates } from "./faulty-cloud.ts";
export { type SimulationOptions, type SimulationResult, simulateCrossing } from "./simulate-crossing.ts";
export { storyOf } from "./story.ts";
