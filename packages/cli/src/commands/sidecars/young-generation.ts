/**
 * The part of the heap where objects begin. V8 doubles it again and again, to 32 MiB of which an idle process seldom gives
 * anything back: as much as all that a sidecar keeps.
 */
import { setFlagsFromString } from "node:v8";

/** Keeps it as small as it is; called before anything else is loaded. Work in bulk pays for it with some processor time. */
export function keepYoungGenerationSmall(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}
