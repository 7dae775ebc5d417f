/** Lists in pages. A token is the last id given, so that it holds while things come and go. */
import { CsiStatusError } from "@longshore/csi";

/** One page. */
export interface Page<T> {
  readonly entries: readonly T[];
  /** Empty at the end. */
  readonly nextToken: string;
}

/**
 * The page that follows the token.
 * @param maxEntries 0: all that are left @param isId whether a text can be an id
 * @throws CsiStatusError ABORTED for a token that this driver did not issue: the caller starts again
 */
export function pageOf<T extends { readonly id: string }>(
  all: readonly T[],
  request: { readonly maxEntries: number; readonly startingToken: string },
  isId: RegExp,
): Page<T> {
  const { startingToken, maxEntries } = request;
  if (startingToken !== "" && !isId.test(startingToken)) {
    throw new CsiStatusError("ABORTED", "starting_token is not one of this driver's: begin again");
  }
  const rest = all.filter(({ id }) => id > startingToken).sort((a, b) => (a.id < b.id ? -1 : 1));
  const entries = maxEntries === 0 ? rest : rest.slice(0, maxEntries);
  return { entries, nextToken: entries.length < rest.length ? (entries.at(-1)?.id ?? "") : "" };
}
