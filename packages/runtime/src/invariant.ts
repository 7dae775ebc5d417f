/** Guards for what must never happen; they hold in production too. */

/** Something that must always hold does not: a defect in Longshore, not in its input. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Throws an {@link InvariantError} unless `condition` holds; `what` says what must hold. */
export function invariant(condition: unknown, what: string): asserts condition {
  if (!condition) throw new InvariantError(`invariant violated: ${what}`);
}

/** For the last branch of an exhaustive switch. */
export function assertNever(value: never): never {
  throw new InvariantError(`unexpected value: ${JSON.stringify(value)}`);
}
