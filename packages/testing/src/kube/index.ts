/** Environments, clocks and links for tests of controllers. */
export {
  type CrashFlow,
  type CrashPoint,
  type CrashReport,
  crashAtEveryPoint,
  crashInPairs,
} from "./crash-points.ts";
export { type Link, laggingClient } from "./lagging-client.ts";
export { Life, mortalClient, mortalSeam, type NthCall, type Side } from "./mortal-client.ts";
export { ProcessClock } from "./stopped-clock.ts";
export { Succession } from "./succession.ts";
export { realEnv, virtualEnv } from "./test-env.ts";
