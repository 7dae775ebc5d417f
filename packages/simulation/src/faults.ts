/**
 * Seeded faults at the seams: requests and replies that get lost, calls that take their time. While
 * healed, every call goes through at once.
 */
import { CsiCallError } from "@longshore/csi";
import { KubeTransportError } from "@longshore/kube";
import type { Clock, Random } from "@longshore/runtime";
import { CloudError } from "@longshore/volumes";
import type { CallGate, SeamCall } from "./cut.ts";

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

/** A gate that loses and delays calls by the random source; `onCall` is called after each that took effect. */
export function faultyGate(
  env: { readonly clock: Clock; readonly random: Random },
  rates: () => FaultRates | undefined,
  onCall: (call: SeamCall, fault: string | undefined) => void,
): CallGate {
  return async (call, proceed) => {
    const now = rates();
    const fault = now === undefined || call.seam === "runtime" ? undefined : drawFault(env.random, now, call);
    if (fault === "delay" && now !== undefined) {
      await env.clock.sleep(1 + env.random.below(now.delayMsMax, "delay"), new AbortController().signal);
    }
    if (fault === "lostRequest") {
      onCall(call, fault);
      throw lost(call);
    }
    try {
      const answer = await proceed();
      if (fault === "lostReply") throw lost(call);
      return answer;
    } finally {
      // Also after a failure: the call may have taken effect, and the contract is checked after each.
      onCall(call, fault);
    }
  };
}

function drawFault(
  random: Random,
  rates: FaultRates,
  call: SeamCall,
): "lostRequest" | "lostReply" | "delay" | undefined {
  const draw = random.below(1000, `fault of ${call.component} ${call.seam}.${call.method}`);
  // A machine does not lose its own calls; it may be slow.
  const lossy = call.seam !== "host";
  if (lossy && draw < rates.lostRequest) return "lostRequest";
  if (lossy && draw < rates.lostRequest + rates.lostReply) return "lostReply";
  // From the other end of the range: one draw decides, and a call that is slow is not lost as well.
  return draw >= 1000 - rates.delay ? "delay" : undefined;
}

/** The failure that a lost request or reply looks like at this seam. */
function lost(call: SeamCall): Error {
  if (call.seam === "csi") {
    return new CsiCallError(call.method, "UNAVAILABLE", "the connection was lost", { answered: false });
  }
  if (call.seam === "cloud") return new CloudError("Unavailable", `${call.method}: no answer`);
  return new KubeTransportError(`${call.method}: the connection was lost`);
}
