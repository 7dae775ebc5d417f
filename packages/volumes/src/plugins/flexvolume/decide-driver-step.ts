/**
 * What comes next for one directory of a Flexvolume driver: what is served becomes equal to what is installed.
 *
 *     installed or changed ─► load ─► served
 *                                └──► broken ─► (wait) ─► load
 *     removed ─► drop
 *
 * Invariants
 *  - A driver that does not work is not served, nor is what it replaces.
 *  - One that does not work is tried again when it changes, and after its back-off.
 * Source: docs/behaviour/flexvolume.md 2.3 and 2.4.
 */
import type { InstalledDriver } from "./driver-directory.ts";

/** What has come of the last load. */
export interface LoadedDriver {
  /** Of the driver when it was loaded. */
  readonly fingerprint: string;
  readonly pluginName: string;
  /** Undefined: it works, and is served. */
  readonly failure: { readonly count: number; readonly retryAtMs: number } | undefined;
}

/** A driver's directory as a pass sees it. */
export interface ObservedDriver {
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
  /** Undefined: no driver is there. */
  readonly installed: InstalledDriver | undefined;
  /** Undefined: it was never loaded, or has been dropped. */
  readonly loaded: LoadedDriver | undefined;
}

/** What comes next. */
export type DriverStep =
  | { readonly step: "settle" }
  /** Again after this time, in milliseconds. */
  | { readonly step: "wait"; readonly ms: number }
  | { readonly step: "load"; readonly driver: InstalledDriver }
  | { readonly step: "drop"; readonly pluginName: string };

/** Decides for a driver's directory; pure. */
export function decideDriverStep({ nowMs, installed, loaded }: ObservedDriver): DriverStep {
  if (installed === undefined) {
    return loaded === undefined ? { step: "settle" } : { step: "drop", pluginName: loaded.pluginName };
  }
  if (loaded?.fingerprint !== installed.fingerprint) return { step: "load", driver: installed };
  if (loaded.failure === undefined) return { step: "settle" };
  const ms = loaded.failure.retryAtMs - nowMs;
  return ms > 0 ? { step: "wait", ms } : { step: "load", driver: installed };
}
