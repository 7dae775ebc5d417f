/** Follows the logs of many tables, a little later than they are written: on a timer of the clock. */
import type { Clock, Timer } from "@longshore/runtime";
import { type Kind, resourceKey } from "../api/kind.ts";
import type { KindTable } from "../api/kind-table.ts";
import type { LogEntry, ObjectTable, Store } from "../storage/store.ts";

/** The callbacks of a follower. */
export interface Followed {
  /** One change; an object that was there when following began comes as ADDED. */
  readonly onChange: (kind: Kind, entry: Pick<LogEntry, "type" | "object" | "previous">) => void;
  /** Called when all changes so far have been delivered. */
  readonly onIdle: () => void;
}

interface Place {
  kind: Kind;
  readonly table: ObjectTable;
  readonly unsubscribe: () => void;
  position: number;
}

/**
 * Follows the tables of the kinds that are `wanted`, also of kinds that are served later. Returns a function that
 * stops this.
 */
export function followTables(
  clock: Clock,
  store: Store,
  kinds: KindTable,
  wanted: (kind: Kind) => boolean,
  followed: Followed,
): () => void {
  let timer: Timer | undefined;
  let ended = false;
  const places = new Map<string, Place>();
  const drain = () => {
    timer = undefined;
    for (const place of places.values()) catchUp(place, store, followed);
    followed.onIdle();
  };
  const wake = () => {
    if (!ended) timer ??= clock.timer(0, drain);
  };
  const follow = (kind: Kind) => {
    const key = resourceKey(kind);
    const known = places.get(key);
    if (known !== undefined) {
      known.kind = kind;
      return;
    }
    const table = store.table(key);
    const position = table.positionAfter(store.readableRevision) ?? 0;
    places.set(key, { kind, table, position, unsubscribe: table.onAppend(wake) });
    for (const object of table.list()) {
      followed.onChange(kind, { type: "ADDED", object, previous: undefined });
    }
  };
  for (const kind of kinds.all()) if (wanted(kind)) follow(kind);
  // The table of a kind that goes is empty: to go on following it costs nothing, and it may come back.
  const endKinds = kinds.onChange(({ added }) => {
    for (const kind of added) if (wanted(kind)) follow(kind);
    wake();
  });
  wake();
  return () => {
    ended = true;
    timer?.cancel();
    endKinds();
    for (const { unsubscribe } of places.values()) unsubscribe();
  };
}

function catchUp(place: Place, store: Store, followed: Followed): void {
  for (;;) {
    const entry = place.table.entry(place.position);
    if (entry === undefined) return;
    if (entry === "gone") {
      // Too far behind: report every current object as ADDED again. Deletions since then are not reported.
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
