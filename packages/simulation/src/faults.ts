/**
 * Seeded faults at the seams: requests and replies that get lost, calls that take their time. While
 * healed, every call goes through at once.
 */
import { CsiCallError } from "@longshore/csi";
import { KubeTransportError } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { CloudError } from "@longshore/volumes";
import type { CallGate, SeamCall } from "./cut.ts";
import type { FaultDraws } from "./fault-draws.ts";

/** How often what happens, in thousandths of calls. */
export interface FaultRates {
  readonly lostRequest: number;
  readonly lostReply: number;
  readonly delay: number;
  /** Longest delay in milliseconds. */
  readonly delayMsMax: number;
}

/** The rates unless others are given. */
export const defaultFaultRates: FaultRates = { lostRequest: 8, lostReply: 8, delay: 120, delayMsMax: 400 };

/** Those of a network that is left in peace. */
export const restingFaultRates: FaultRates = { lostRequest: 1, lostReply: 1, delay: 5, delayMsMax: 400 };

/** What a call suffers. */
export type CallFault =
  | { readonly kind: "lostRequest" | "lostReply" }
  /** It arrives after so many milliseconds. */
  | { readonly kind: "delay"; readonly ms: number };

/** A gate that loses and delays calls as drawn; `onCall` is called after each that may have taken effect. */
export function faultyGate(
  env: { readonly clock: Clock; readonly draws: FaultDraws },
  rates: () => FaultRates | undefined,
  onCall: (call: SeamCall, fault: CallFault | undefined) => void,
): CallGate {
  return async (call, proceed) => {
    const now = rates();
    const fault = now === undefined || call.seam === "runtime" ? undefined : drawFault(env.draws, now, call);
    if (fault?.kind === "delay") await env.clock.sleep(fault.ms, new AbortController().signal);
    if (fault?.kind === "lostRequest") {
      onCall(call, fault);
      throw lost(call);
    }
    try {
      const answer = await proceed();
      if (fault?.kind === "lostReply") throw lost(call);
      return answer;
    } finally {
      // Also after a failure: the call may have taken effect, and the contract is checked after each.
      onCall(call, fault);
    }
  };
}

function drawFault(draws: FaultDraws, rates: FaultRates, call: SeamCall): CallFault | undefined {
  const draw = draws.next(`${call.component} ${call.seam}.${call.method}`);
  const number = draw.below(1000);
  // Drawn always: whether a fault is let happen changes no later one.
  const ms = 1 + draw.below(rates.delayMsMax);
  const fault = faultOf(number, ms, rates, call);
  return fault === undefined || !draws.happens(draw) ? undefined : fault;
}

function faultOf(number: number, ms: number, rates: FaultRates, call: SeamCall): CallFault | undefined {
  // A machine does not lose its own calls; it may be slow.
  const lossy = call.seam !== "host";
  if (lossy && number < rates.lostRequest) return { kind: "lostRequest" };
  if (lossy && number < rates.lostRequest + rates.lostReply) return { kind: "lostReply" };
  // From the other end of the range: one draw decides, and a call that is slow is not lost as well.
  return number >= 1000 - rates.delay ? { kind: "delay", ms } : undefined;
}

/** The failure that a lost request or reply looks like at this seam. */
function lost(call: SeamCall): Error {
  if (call.seam === "csi") {
    return new CsiCallError(call.method, "UNAVAILABLE", "the connection was lost", { answered: false });
  }
  if (call.seam === "cloud") return new CloudError("Unavailable", `${call.method}: no answer`);
  return new KubeTransportError(`${call.method}: the connection was lost`);
}
