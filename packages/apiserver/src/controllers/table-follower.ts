/** Follows the logs of many tables, a little later than they are written: on a timer of the clock. */
import type { Clock, Timer } from "@longshore/runtime";
import type { Kind } from "../registry/kind.ts";
import { resourceKey } from "../registry/kind.ts";
import type { LogEntry, ObjectTable, Store } from "../storage/store.ts";

/** What a follower tells. */
export interface Followed {
  /** One change; an object that was there when following began comes as ADDED. */
  readonly onChange: (kind: Kind, entry: Pick<LogEntry, "type" | "object" | "previous">) => void;
  /** All changes so far have been told. */
  readonly onIdle: () => void;
}

interface Place {
  readonly kind: Kind;
  readonly table: ObjectTable;
  position: number;
}

/** Begins to follow; gives the way to end it. */
export function followTables(
  clock: Clock,
  store: Store,
  kinds: readonly Kind[],
  followed: Followed,
): () => void {
  let timer: Timer | undefined;
  let ended = false;
  const places: Place[] = kinds.map((kind) => {
    const table = store.table(resourceKey(kind));
    return { kind, table, position: table.positionAfter(store.readableRevision) ?? 0 };
  });
  for (const { kind, table } of places) {
    for (const object of table.list())
      followed.onChange(kind, { type: "ADDED", object, previous: undefined });
  }
  const drain = () => {
    timer = undefined;
    for (const place of places) {
      for (;;) {
        const entry = place.table.entry(place.position);
        if (entry === undefined) break;
        if (entry === "gone") {
          // Far behind: what is there now is told anew, and what went meanwhile is found out by asking.
          place.position = place.table.positionAfter(store.readableRevision) ?? place.position + 1;
          for (const object of place.table.list()) {
            followed.onChange(place.kind, { type: "ADDED", object, previous: undefined });
          }
          continue;
        }
        place.position++;
        followed.onChange(place.kind, entry);
      }
    }
    followed.onIdle();
  };
  const wake = () => {
    if (!ended) timer ??= clock.timer(0, drain);
  };
  const unsubscribe = places.map(({ table }) => table.onAppend(wake));
  wake();
  return () => {
    ended = true;
    timer?.cancel();
    for (const end of unsubscribe) end();
  };
}
