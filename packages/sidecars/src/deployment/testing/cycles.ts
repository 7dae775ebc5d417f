/** All cycles: together they make use of every right that a deployment gives. */
import type { AccessCycle } from "./access-world.ts";
import { attacherCycle } from "./attacher-cycle.ts";
import { provisionerCycle } from "./provisioner-cycle.ts";

/** See the file's header. */
export const accessCycles: readonly AccessCycle[] = [provisionerCycle, attacherCycle];
