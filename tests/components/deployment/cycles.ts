/** All cycles: together they use every right that a deployment grants. */
import type { AccessCycle } from "./access-world.ts";
import { attacherCycle } from "./attacher-cycle.ts";
import { provisionerCycles } from "./provisioner-cycle.ts";
import { resizerCycles } from "./resizer-cycle.ts";
import { smallCycles } from "./small-cycles.ts";
import { snapshotCycles } from "./snapshot-cycles.ts";

/** The access cycles of all components. */
export const accessCycles: readonly AccessCycle[] = [
  ...provisionerCycles,
  attacherCycle,
  ...resizerCycles,
  ...snapshotCycles,
  ...smallCycles,
];
