/** All checks of the suite, in the order in which they run. */
import type { Check } from "../check.ts";
import { identityChecks } from "./identity.ts";
import { protocolChecks } from "./protocol.ts";

/** Every check. */
export const checks: readonly Check[] = [...identityChecks, ...protocolChecks];
