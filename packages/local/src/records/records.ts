/**
 * The format of records and the proof over them. A record is a line `<number> <check>`
 * whose check is a sum over the number and the volume's name, so that a torn or foreign line is seen.
 */

/** The line of a record, without its line end. */
export function recordLine(volume: string, number: number): string {
  return `${number} ${checksum(`${volume}:${number}`)}`;
}

/** The highest number up to which the records are whole and in order; 0 for none. */
export function lastRecord(volume: string, text: string): number {
  let last = 0;
  for (const line of text.split("\n")) {
    if (line !== recordLine(volume, last + 1)) break;
    last++;
  }
  return last;
}

/** What a writer's log says: every number it has acknowledged, over all of its pods. A torn line says nothing. */
export function acknowledgedRecords(logs: readonly string[]): ReadonlySet<number> {
  const numbers = new Set<number>();
  for (const log of logs) {
    for (const match of log.matchAll(/^ack (\d+)\n/gm)) numbers.add(Number(match[1]));
  }
  return numbers;
}

/**
 * Numbers that were acknowledged more than once: a writer goes on after what it finds on its volume, so
 * such a record was gone when a later writer began, though the volume may hold it again by now.
 */
export function rewrittenRecords(logs: readonly string[]): number[] {
  const seen = new Set<number>();
  const again = new Set<number>();
  for (const log of logs) {
    for (const match of log.matchAll(/^ack (\d+)\n/gm)) {
      const number = Number(match[1]);
      (seen.has(number) ? again : seen).add(number);
    }
  }
  return [...again].sort((a, b) => a - b);
}

/** Acknowledged numbers that the volume's text does not hold. */
export function lostRecords(volume: string, text: string, acknowledged: ReadonlySet<number>): number[] {
  const held = new Set<number>();
  for (const line of text.split("\n")) {
    const number = Number(line.split(" ")[0]);
    if (line !== "" && line === recordLine(volume, number)) held.add(number);
  }
  return [...acknowledged].filter((number) => !held.has(number)).sort((a, b) => a - b);
}

/** FNV-1a, 32 bit, in hexadecimal. */
function checksum(text: string): string {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return h.toString(16).padStart(8, "0");
}
