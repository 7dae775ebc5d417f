/** How fresh the page is, in words: what is not followed now, and since when. */
import type { DashboardState, StaleSource } from "../state.ts";

/** What the page says of itself. */
export interface Freshness {
  readonly link: "live" | "waiting" | "stale" | "lost";
  readonly text: string;
  /** Parts that show an old state: ids of parts, `cluster` (all that comes from the API server) or `all`. */
  readonly parts: readonly string[];
  readonly notes: readonly string[];
}

/** The sections that show a list, by its plural. */
const sectionsOf: Readonly<Record<string, string>> = {
  nodes: "nodes",
  csinodes: "nodes",
  pods: "nodes",
  leases: "nodes",
  persistentvolumes: "volumes",
  volumeattachments: "attachments",
  events: "events",
};

/** As a picture says it. */
export function freshnessOf({ stale, complete }: DashboardState): Freshness {
  const away = stale.find(({ source }) => source === "API server");
  if (away !== undefined) {
    const notes = [
      `Shown as it was at ${clockTime(away.since)}: the API server does not answer (${away.error}).`,
    ];
    return {
      link: "stale",
      text: `stale since ${clockTime(away.since)}, retrying`,
      parts: ["cluster"],
      notes,
    };
  }
  if (stale.length > 0) {
    const parts = stale.map(({ source }) => sectionsOf[source] ?? "cluster");
    const first = stale.map(({ since }) => since).sort()[0] ?? "";
    const text = `partly stale since ${clockTime(first)}, retrying`;
    return { link: "stale", text, parts, notes: stale.map(sourceNote) };
  }
  if (!complete) return { link: "waiting", text: "waiting for the cluster…", parts: [], notes: [] };
  return { link: "live", text: "live", parts: [], notes: [] };
}

function sourceNote({ source, since, error }: StaleSource): string {
  return `${source}: shown as they were at ${clockTime(since)} (${error}).`;
}

/** When the dashboard itself is not heard. */
export function linkFreshness(heardAt: Date, hasPicture: boolean): Freshness {
  const at = clockTime(heardAt.toISOString());
  const hint = "Is `longshore dashboard` still running?";
  const notes = [hasPicture ? `Shown as it was at ${at}. ${hint}` : hint];
  return { link: "lost", text: `disconnected since ${at}, retrying`, parts: ["all"], notes };
}

/** The time of day in the reader's own form, with the date where that is not today's. */
export function clockTime(rfc3339: string): string {
  const time = new Date(rfc3339);
  if (Number.isNaN(time.getTime())) return "–";
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? time.toLocaleTimeString() : time.toLocaleString();
}
