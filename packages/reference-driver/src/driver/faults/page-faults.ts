/** Faults of lists in pages, of volumes and of snapshots alike. */
import { around, type Fault } from "./fault.ts";

type ListRpc = "listVolumes" | "listSnapshots";

/** After each page its last entry comes once more, as a page of its own. */
export function repeatsEntries(rpc: ListRpc): Fault {
  return around("controller", rpc, () => {
    const repeat = repeater();
    return async ({ request, next }) =>
      repeat((request as { readonly startingToken: string }).startingToken, () => next());
  });
}

interface PageOf {
  readonly entries?: readonly unknown[];
  readonly nextToken?: string;
}

function repeater() {
  const lastEntries = new Map<string, unknown>();
  const repeated = new Set<string>();
  return async <A extends object>(startingToken: string, next: () => Promise<A>): Promise<A> => {
    const last = lastEntries.get(startingToken);
    if (last !== undefined && !repeated.delete(startingToken)) {
      repeated.add(startingToken);
      return { entries: [last], nextToken: startingToken } as unknown as A;
    }
    const answer = await next();
    const { entries = [], nextToken = "" } = answer as PageOf;
    if (nextToken !== "") lastEntries.set(nextToken, entries.at(-1));
    return answer;
  };
}

/** The last entry of a page that is not the last page is on no page. */
export function losesEntries(rpc: ListRpc): Fault {
  return around("controller", rpc, () => async ({ next }) => {
    const answer = await next();
    const { entries = [], nextToken = "" } = answer as PageOf;
    return nextToken === "" ? answer : ({ entries: entries.slice(0, -1), nextToken } as never);
  });
}
