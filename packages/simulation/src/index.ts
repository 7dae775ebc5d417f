/** Seeded simulation of crossings, with the contract checked at every step. */

export { type DiskSpan, DiskTimeline } from "./disk-timeline.ts";
export { defaultFaultRates, type FaultRates } from "./faults.ts";
export { type CloudFaultRates, defaultCloudFaultRates } from "./faulty-cloud.ts";
export { type Minimised, type MinimiseOptions, minimise } from "./minimise.ts";
export type { SeedOptions, SeedResult } from "./seed-result.ts";
export {
  type ConversionSimulationOptions,
  type ConversionSimulationResult,
  simulateConversion,
} from "./simulate-conversion.ts";
export { type SimulationOptions, type SimulationResult, simulateCrossing } from "./simulate-crossing.ts";
export {
  combinationBreaks,
  combinationTable,
  isAsPromised,
  isStoryAsPromised,
  mayStall,
  modeWords,
  orderLines,
  type PlayedCombination,
  replayLines,
  versionLines,
} from "./skew/describe-skew.ts";
export {
  exploreSkew,
  type SkewEdge,
  type SkewGraph,
  type SkewNode,
  type SkewProgress,
} from "./skew/explore-skew.ts";
export type { Flip, GatePicture } from "./skew/flip.ts";
export {
  orderCount,
  orderNumbered,
  type ReplayedOrder,
  type ReplayedStep,
  replay,
} from "./skew/replay-orders.ts";
export {
  type Direction,
  type OrderCount,
  ordersOf,
  type SkewOrders,
  type UnsafeGroup,
} from "./skew/skew-orders.ts";
export {
  type Combination,
  type CombinationOutcome,
  combinationsOf,
  playCombination,
} from "./skew/skew-table.ts";
export {
  type DowngradeOrder,
  playVersions,
  type VersionOutcome,
  type VersionStep,
  type VersionStory,
  versionStories,
} from "./skew/skew-versions.ts";
export type { SkewMode, SkewOptions, Stall } from "./skew/stall.ts";
export type { WorldReach } from "./swarm/reached.ts";
export { simulateWorld, type WorldOptions } from "./swarm/simulate-world.ts";
export { simulateSmallWorld } from "./swarm/small-world.ts";
export { coverage, type Reach, type SwarmCoverage } from "./swarm/swarm-coverage.ts";
export {
  type FaultKind,
  faultKinds,
  type OperationKind,
  operationKinds,
  type SwarmKind,
  type SwarmPlan,
  type VolumeKind,
  volumeKinds,
} from "./swarm/swarm-plan.ts";
export type { WorldResult } from "./swarm/world-result.ts";
export { type TimelineHeading, timelinePage } from "./timeline-page.ts";
export { type TraceEvent, type TraceKind, traceLine } from "./trace.ts";
export { violationTrace } from "./violation-trace.ts";
