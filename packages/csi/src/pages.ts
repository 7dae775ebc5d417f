/** Reads paginated lists to their end, with a limit: a broken driver may return pages without end. */

/** Most pages of one list. */
const pagesMax = 100_000;
/** Most entries of one list. */
const entriesMax = 1_000_000;

/** A list of the driver does not end. */
export class EndlessListError extends Error {
  override readonly name = "EndlessListError";
}

/** What a page holds; `nextToken` is empty on the last one. */
export interface ListPage<E> {
  readonly entries: readonly E[];
  readonly nextToken: string;
}

/**
 * The entries of all pages, one after the other.
 * @param rpc for the message, e.g. `ListVolumes`
 * @param page asks for the page that begins at a token; the first one is empty
 * @throws EndlessListError when a token comes again, or there are more pages or entries than any driver has
 */
export async function* entriesOfPages<E>(
  rpc: string,
  page: (startingToken: string) => Promise<ListPage<E>>,
): AsyncGenerator<E> {
  let [token, pages, entries] = ["", 0, 0];
  // The token after 1, 2, 4, 8, … pages: a circle comes back to one of them (Brent), and nothing else is kept.
  let [mark, markedAt] = ["", 0];
  do {
    const answer = await page(token);
    entries += answer.entries.length;
    if (entries > entriesMax) throw endless(rpc, `it has more than ${entriesMax} entries`);
    yield* answer.entries;
    token = answer.nextToken;
    if (token !== "" && token === mark) throw endless(rpc, "it gives the same next_token again");
    if (++pages > pagesMax) throw endless(rpc, `it has more than ${pagesMax} pages`);
    if (pages >= 2 * markedAt) [mark, markedAt] = [token, pages];
  } while (token !== "");
}

function endless(rpc: string, how: string): EndlessListError {
  return new EndlessListError(`driver bug: the list of ${rpc} does not end: ${how}`);
}
