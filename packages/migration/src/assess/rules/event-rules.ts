/** What controllers and kubelets report of volumes in their events: the last of each object and reason. */
import type { Event, Stored } from "@longshore/kube";
import type { InventoryFacts } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";

/** Findings about events. */
export function eventRules(view: InventoryFacts): RuleFinding[] {
  const last = new Map<string, Stored<Event>>();
  for (const event of view.inventory.events) {
    const key = `${subjectOfEvent(event)} ${event.reason}`;
    const before = last.get(key);
    if (before === undefined || timeOf(event) > timeOf(before)) last.set(key, event);
  }
  return [...last.values()].map((event) =>
    found("LS1507", {
      object: subjectOfEvent(event),
      field: `Event ${event.reason}`,
      evidence: `${event.message ?? ""}${timeOf(event) === "" ? "" : ` (last at ${timeOf(event)})`}`,
    }),
  );
}

function subjectOfEvent({ involvedObject }: Stored<Event>): string {
  const { kind = "object", namespace = "", name = "" } = involvedObject ?? {};
  return `${kind} ${namespace === "" ? name : `${namespace}/${name}`}`;
}

function timeOf({ lastTimestamp, eventTime }: Stored<Event>): string {
  return lastTimestamp ?? eventTime ?? "";
}
