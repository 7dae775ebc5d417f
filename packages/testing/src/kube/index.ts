/** Environments, clocks and links for tests of controllers. */
export { type CrashPair, type CrashPoint, pointsOf, sampleOf } from "./crash-pairs.ts";
export { type Link, laggingClient } from "./lagging-client.ts";
export { Life, mortalClient, type NthCall, type Side } from "./mortal-client.ts";
export { ProcessClock } from "./stopped-clock.ts";
export { realEnv, virtualEnv } from "./test-env.ts";
