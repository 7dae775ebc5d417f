/** Seeded simulation of crossings, with the contract checked at every step. */

export { badCloudDay, type CloudFaultRates } from "./cloud-faults.ts";
export { type SimulationOptions, type SimulationResult, simulateCrossing } from "./crossing-simulation.ts";
export { badDay, type FaultRates } from "./faults.ts";
export { storyOf } from "./story.ts";
