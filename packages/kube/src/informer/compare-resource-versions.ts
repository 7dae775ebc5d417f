/**
 * Resource versions, as far as a client may interpret them: two are equal, or, where both are
 * decimal numbers as every API server in use writes them, one is older.
 */

/** Negative when `a` is older, 0 when they are equal, undefined when the two cannot be compared. */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!isNumeric(a) || !isNumeric(b)) return undefined;
  return a.length !== b.length ? a.length - b.length : a < b ? -1 : 1;
}

/** A decimal number without leading zeros, so that length and text order are numeric order. */
function isNumeric(version: string): boolean {
  return /^(0|[1-9][0-9]*)$/.test(version);
}
