/** Events that a crossing reports while it runs. */
import type { Finding } from "./finding.ts";
import type { WaitReport } from "./wait.ts";

/** One step's beginning, end or present obstacle, or what the preflight warns of. Times are in milliseconds. */
export type CrossingEvent =
  | { readonly kind: "warning"; readonly finding: Finding }
  | { readonly kind: "stepStarted"; readonly step: string; readonly nodeName?: string }
  | { readonly kind: "stepDone"; readonly step: string; readonly nodeName?: string; readonly ms: number }
  | ({ readonly kind: "waiting"; readonly step: string; readonly nodeName?: string } & WaitReport);

/** Called for every event, in order. */
export type CrossingListener = (event: CrossingEvent) => void;
