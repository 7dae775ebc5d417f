/** The feed of events: the newest first, a bounded number of them. */
import type { Event, Stored } from "@longshore/kube";
import type { EventState } from "./state.ts";

/** Most events of a picture. */
export const eventsMax = 60;

/** The newest events. */
export function eventStatesOf(events: readonly Stored<Event>[]): EventState[] {
  return events
    .map(eventStateOf)
    .sort((a, b) => (a.time === b.time ? (a.id < b.id ? -1 : 1) : a.time < b.time ? 1 : -1))
    .slice(0, eventsMax);
}

function eventStateOf(event: Stored<Event>): EventState {
  const { kind = "", namespace, name = "" } = event.involvedObject;
  return {
    id: event.metadata.uid,
    time: timeOf(event),
    type: event.type === "Warning" ? "Warning" : "Normal",
    reason: event.reason ?? "",
    object: `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`.trim(),
    message: event.message ?? "",
    count: event.series?.count ?? event.count ?? 1,
  };
}

/** When it was last seen. Both API generations of events are in use, each with fields of its own. */
function timeOf(event: Stored<Event>): string {
  return (
    event.series?.lastObservedTime ??
    event.lastTimestamp ??
    event.eventTime ??
    event.firstTimestamp ??
    event.metadata.creationTimestamp ??
    ""
  );
}
