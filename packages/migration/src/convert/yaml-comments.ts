/** Does a YAML document have comments? Writing it again would lose them. */

import { EVENT_ID, parseEvents } from "js-yaml";

const MAYBE_COMMENT = /(?:^|[ \t])#/gm;

/** True when `text`, which parses, holds a comment: a `#` behind a blank or at the start of a line, outside every value. */
export function hasComments(text: string): boolean {
  const candidates = [...text.matchAll(MAYBE_COMMENT)];
  if (candidates.length === 0) return false;
  const values: (readonly [start: number, end: number])[] = [];
  for (const event of parseEvents(text, {})) {
    if (event.type === EVENT_ID.SCALAR) values.push([event.valueStart, event.valueEnd]);
  }
  let next = 0;
  for (const match of candidates) {
    const at = match.index + match[0].length - 1;
    while (next < values.length && (values[next]?.[1] ?? 0) <= at) next += 1;
    const [start] = values[next] ?? [Number.POSITIVE_INFINITY];
    if (at < start) return true;
  }
  return false;
}
