/** What a crossing tells while it runs. */

/** One step's beginning, end or present obstacle. Times are in milliseconds. */
export type CrossingEvent =
  | { readonly kind: "stepStarted"; readonly step: string; readonly nodeName?: string }
  | { readonly kind: "stepDone"; readonly step: string; readonly nodeName?: string; readonly ms: number }
  | { readonly kind: "waiting"; readonly step: string; readonly nodeName?: string; readonly for: string };

/** Told of every event, in order. */
export type CrossingListener = (event: CrossingEvent) => void;
