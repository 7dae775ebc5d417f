/** Environments for tests: virtual, and real but silent. */
import {
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  silentLogger,
  systemClock,
  systemRandom,
  VirtualClock,
} from "@longshore/runtime";

/** A virtual environment and its clock. */
export function virtualEnv(seed = 1): RuntimeEnv & { readonly clock: VirtualClock } {
  return { clock: new VirtualClock(), random: new SeededRandom(seed), logger: silentLogger, meter: noMeter };
}

/** The machine's clock and entropy, no logs. */
export const realEnv: RuntimeEnv = {
  clock: systemClock,
  random: systemRandom,
  logger: silentLogger,
  meter: noMeter,
};
