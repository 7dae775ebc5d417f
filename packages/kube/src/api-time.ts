/** Times as the API writes them. Source: apimachinery meta/v1 Time and MicroTime. Pure, save for one remembered text. */

/** A time as the API writes it (meta/v1 Time): RFC 3339, UTC, whole seconds; what is below a second is dropped. */
export function apiTime(date: Date): string {
  const second = Math.floor(date.getTime() / 1000);
  if (second !== last.second) last = { second, text: `${date.toISOString().slice(0, 19)}Z` };
  return last.text;
}

/** The time that was requested last: many writes come within one second. */
let last = { second: Number.NaN, text: "" };

/** A time with microseconds (meta/v1 MicroTime), as leases have it. */
export function microTime(date: Date): string {
  return date.toISOString().replace("Z", "000Z");
}
