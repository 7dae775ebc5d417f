/** Walking through lists. */
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer } from "../expect.ts";

/** One page of a list. */
export interface Page {
  readonly ids: readonly string[];
  readonly nextToken: string;
}

/** Pages that no list has: what has more does not end. */
const pagesMax = 100_000;

/** All ids of a list, page by page. @throws CheckFailure when a token is given twice, or a page is too long */
export async function walk(
  what: string,
  maxEntries: number,
  page: (maxEntries: number, startingToken: string) => Promise<Page>,
): Promise<readonly string[]> {
  const ids: string[] = [];
  const tokens = new Set<string>();
  let token = "";
  for (let pages = 0; pages < pagesMax; pages++) {
    const { ids: more, nextToken } = await page(maxEntries, token);
    must(
      maxEntries === 0 || more.length <= maxEntries,
      `${what} with max_entries ${maxEntries} gave ${more.length} entries`,
    );
    ids.push(...more);
    if (nextToken === "") return ids;
    must(!tokens.has(nextToken), `${what} gave the next_token "${nextToken}" twice: the list does not end`);
    tokens.add(nextToken);
    token = nextToken;
  }
  throw new Error(`${what}: ${pagesMax} pages and no end`);
}

/** One page of ListVolumes. */
export async function volumesPage(
  context: CheckContext,
  maxEntries: number,
  startingToken: string,
): Promise<Page> {
  const { entries, nextToken } = await mustAnswer(
    "ListVolumes",
    context.controller.listVolumes({ maxEntries, startingToken }),
  );
  return { ids: entries.map(({ volume }) => volume?.volumeId ?? ""), nextToken };
}

/** The ids of all volumes. */
export function idsOfAllVolumes(context: CheckContext, maxEntries = 0): Promise<readonly string[]> {
  return walk("ListVolumes", maxEntries, (max, token) => volumesPage(context, max, token));
}
