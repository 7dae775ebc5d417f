/**
 * What comes next for one registration socket: what is registered becomes equal to the sockets that exist.
 *
 *     socket appears ─► ask ─┬─► register ─┬─► reportRegistered
 *                        │   └─ refused ─┐ └─ failed ─┐
 *                        │               └────────────┴─► reportFailure ─► recordFailure
 *                        └─ no answer ───────────────────────────────────────┘
 *     socket removed or recreated ─► deregister ─► (ask again)
 *
 * Invariants
 *  - The old plugin of a recreated socket is deregistered before the new one is asked.
 *  - Nothing is asked while nothing may be registered: a registrar that comes early is left waiting, since a refused one exits.
 *  - A registration that failed after the plugin entered the table is not tried again: the registrar, which was informed, recreates its
 *    socket. Where it could not be informed the plugin leaves the table.
 *  - Only what ended without an entry in the table is asked again, and not before its back-off is over.
 * Source: docs/behaviour/node-agent.md 1.3.
 */
import type { PluginCandidate } from "./csi-registration-handler.ts";

/** How far this pass has come with a registration. */
export type RegistrationAttempt =
  /** The registrar has answered; `refusal`: why its plugin cannot be registered. */
  | {
      readonly stage: "asked";
      /** Identity of the socket through which the registrar was asked. */
      readonly identity: string;
      readonly type: string;
      readonly candidate: PluginCandidate;
      readonly refusal: { readonly error: unknown } | undefined;
    }
  | { readonly stage: "registered"; readonly candidate: PluginCandidate }
  /** `mayReport`: the registrar is there for a report, and has had none. */
  | { readonly stage: "failed"; readonly error: unknown; readonly mayReport: boolean };

/** A registration socket as a pass sees it. */
export interface ObservedPlugin {
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
  /** Monotonic time in milliseconds before which a failed registration is not tried again. */
  readonly retryAtMs: number;
  /** Identity of the socket; undefined: there is none. */
  readonly found: string | undefined;
  /** Identity of the socket whose plugin is registered, or was when its registration failed. */
  readonly registered: string | undefined;
  /** There is something to register plugins on. */
  readonly mayRegister: boolean;
  /** Undefined: this pass has not begun a registration. */
  readonly attempt: RegistrationAttempt | undefined;
}

/** What comes next for a registration socket. */
export type PluginStep =
  | { readonly step: "settle" }
  /** A registration failed: again after this time, in milliseconds. */
  | { readonly step: "wait"; readonly ms: number }
  | { readonly step: "deregister" }
  /** Ask the registrar which plugin it presents. */
  | { readonly step: "ask"; readonly identity: string }
  /** Enter the plugin of this socket in the table and register it. */
  | {
      readonly step: "register";
      readonly identity: string;
      readonly type: string;
      readonly candidate: PluginCandidate;
    }
  | { readonly step: "reportRegistered"; readonly candidate: PluginCandidate }
  | { readonly step: "reportFailure"; readonly error: unknown }
  | { readonly step: "recordFailure"; readonly error: unknown };

/** Decides for a registration socket; pure. */
export function decidePluginStep(observed: ObservedPlugin): PluginStep {
  const { nowMs, retryAtMs, found, registered, mayRegister, attempt } = observed;
  if (attempt !== undefined) return stepOfAttempt(attempt);
  if (registered !== undefined && registered !== found) return { step: "deregister" };
  if (registered !== undefined || found === undefined || !mayRegister) return { step: "settle" };
  return retryAtMs > nowMs ? { step: "wait", ms: retryAtMs - nowMs } : { step: "ask", identity: found };
}

/** An attempt goes on to its end with the socket that it began with; what changed meanwhile is for the next pass. */
function stepOfAttempt(attempt: RegistrationAttempt): PluginStep {
  switch (attempt.stage) {
    case "asked": {
      const { identity, type, candidate, refusal } = attempt;
      if (refusal !== undefined) return { step: "reportFailure", error: refusal.error };
      return { step: "register", identity, type, candidate };
    }
    case "registered":
      return { step: "reportRegistered", candidate: attempt.candidate };
    case "failed":
      return { step: attempt.mayReport ? "reportFailure" : "recordFailure", error: attempt.error };
  }
}
