/** Times as the API writes them. */

/** A time as the API writes it: whole seconds, UTC. */
export function apiTime(date: Date): string {
  const second = Math.floor(date.getTime() / 1000);
  if (second !== last.second) last = { second, text: `${date.toISOString().slice(0, 19)}Z` };
  return last.text;
}

/** The time that was asked for last: many writes come within one second. */
let last = { second: Number.NaN, text: "" };
