/**
 * Lists and watches against a model that keeps every version of every object: for any writes, and any order of
 * reading pages and watches, they return what the model knows, or answer that the version is too old.
 */
import { type KubeApiError, type KubeObject, resources, type Stored } from "@longshore/kube";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { ApiQuery, ListAnswer, WatchAnswer, WatchStream } from "../api/api-request.ts";
import { aServer } from "../testing/world.ts";

const historyLimit = 12;
const namespaces = ["a", "a-b"];

interface Scope {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** What a reader that began with a version must have come to. */
interface Reader {
  readonly scope: Scope;
  readonly stream: WatchStream;
  readonly known: Map<string, string>;
  revision: number;
  isOver: boolean;
}

const scope = fc.record(
  {
    namespace: fc.constantFrom(...namespaces),
    labelSelector: fc.constantFrom("on", "!on", "on=1"),
    fieldSelector: fc.constantFrom("metadata.name=n1", "metadata.name!=n0"),
  },
  { requiredKeys: [] },
);
const place = { namespace: fc.constantFrom(...namespaces), name: fc.nat(5).map((n) => `n${n}`) };
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("put" as const), ...place, on: fc.constantFrom("", "1", "2") }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("delete" as const), ...place }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("compact" as const), back: fc.nat(2) }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("list" as const), scope, back: fc.nat(20), exact: fc.boolean() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("page" as const), scope, limit: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("turn" as const), which: fc.nat(3), late: fc.nat(3) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("watch" as const), scope, back: fc.nat(20), state: fc.boolean() }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("read" as const), which: fc.nat(5), count: fc.nat(6) }),
  },
);

const keyOf = (o: KubeObject) => `${o.metadata?.namespace}/${o.metadata?.name}`;
const text = (o: KubeObject) => JSON.stringify([o.metadata?.labels ?? {}, o.metadata?.resourceVersion]);

function selected(objects: readonly Stored[], { namespace, labelSelector, fieldSelector }: Scope): Stored[] {
  return objects.filter((o) => {
    const on = o.metadata.labels?.on;
    if (namespace !== undefined && o.metadata.namespace !== namespace) return false;
    if (labelSelector === "on" && on === undefined) return false;
    if (labelSelector === "!on" && on !== undefined) return false;
    if (labelSelector === "on=1" && on !== "1") return false;
    if (fieldSelector === "metadata.name=n1" && o.metadata.name !== "n1") return false;
    return !(fieldSelector === "metadata.name!=n0" && o.metadata.name === "n0");
  });
}

it("lists, pages and watches return what was there, or 410 where it is too long ago", () => {
  const seen = { pages: 0, gone: 0, events: 0, lost: 0 };
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 120 }), (steps) => {
      const { server, store } = aServer({ historyLimit });
      const user = { name: "t", groups: [] };
      const ask = (verb: "list" | "watch", { namespace, ...selectors }: Scope, query: ApiQuery) =>
        server.registry.handle({
          verb,
          group: "",
          version: "v1",
          resource: "configmaps",
          ...(namespace === undefined ? {} : { namespace }),
          query: { ...query, ...selectors },
          user,
        });
      /** Every version of the table, and the first of which something may be forgotten. */
      const past = new Map<number, readonly Stored[]>([[store.revision, []]]);
      let live = new Map<string, Stored>();
      let compacted = 0;
      const tokens: {
        readonly scope: Scope;
        readonly token: string;
        readonly revision: number;
        readonly rest: Stored[];
        readonly limit: number;
      }[] = [];
      const readers: Reader[] = [];
      const commit = (namespace: string, name: string, object?: KubeObject) => {
        const change = { resource: resources.configMaps.plural, namespace, name };
        const { objects } = store.commit([object === undefined ? change : { ...change, object }]);
        live = new Map(live);
        if (object === undefined) live.delete(`${namespace}/${name}`);
        else live.set(`${namespace}/${name}`, objects[0] as Stored);
        const order = [...live].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, o]) => o);
        past.set(store.revision, order);
      };
      const then = (revision: number, of: Scope) => {
        let at = revision;
        while (at > 0 && !past.has(at)) at--;
        return selected(past.get(at) ?? [], of);
      };
      /** Asks; a refusal must be 410, and only for what may be forgotten. */
      const attempt = (revision: number, run: () => ListAnswer): ListAnswer | KubeApiError => {
        try {
          return run();
        } catch (error) {
          const failure = error as KubeApiError;
          expect(failure.code).toBe(410);
          expect(revision < compacted || store.revision - revision >= historyLimit).toBe(true);
          seen.gone++;
          return failure;
        }
      };
      const takePage = (of: Scope, limit: number, rest: Stored[], answer: ListAnswer, revision: number) => {
        expect(answer.resourceVersion).toBe(String(revision));
        expect(answer.items).toEqual(rest.slice(0, limit));
        const behind = rest.slice(limit);
        expect(answer.continue !== undefined).toBe(behind.length > 0);
        const isSelected = of.labelSelector !== undefined || of.fieldSelector !== undefined;
        expect(answer.remaining).toBe(behind.length > 0 && !isSelected ? behind.length : undefined);
        if (answer.continue !== undefined)
          tokens.push({ scope: of, token: answer.continue, revision, rest: behind, limit });
        seen.pages++;
      };
      const read = (reader: Reader): boolean => {
        const item = reader.stream.take();
        if (item === undefined || item === "ended") {
          if (item === undefined) {
            // Up to date: what the reader knows is what is there.
            const now = then(store.revision, reader.scope);
            expect([...reader.known].sort()).toEqual(now.map((o) => [keyOf(o), text(o)]).sort());
          } else reader.isOver = true;
          return false;
        }
        if (item.type === "ERROR") {
          expect(item.status).toMatchObject({ code: 410 });
          expect(reader.revision < compacted || store.revision - reader.revision >= historyLimit).toBe(true);
          reader.isOver = true;
          seen.lost++;
          return false;
        }
        if (item.type === "BOOKMARK") return true;
        seen.events++;
        const { object, type } = item;
        const version = Number(object.metadata.resourceVersion);
        expect(type === "ADDED").toBe(!reader.known.has(keyOf(object)));
        if (version > reader.revision) {
          reader.revision = version;
          const after = then(version, reader.scope).find((o) => keyOf(o) === keyOf(object));
          expect(type === "DELETED").toBe(after === undefined);
          if (after !== undefined) expect(object).toEqual(after);
        }
        if (type === "DELETED") reader.known.delete(keyOf(object));
        else reader.known.set(keyOf(object), text(object));
        return true;
      };
      for (const s of steps) {
        if (s.do === "put") {
          const labels = s.on === "" ? {} : { labels: { on: s.on } };
          commit(s.namespace, s.name, { metadata: { name: s.name, namespace: s.namespace, ...labels } });
        } else if (s.do === "delete") {
          if (live.has(`${s.namespace}/${s.name}`)) commit(s.namespace, s.name);
        } else if (s.do === "compact") {
          compacted = Math.max(compacted, store.revision - s.back);
          store.compact(store.revision - s.back);
        } else if (s.do === "list") {
          const revision = Math.max(1, store.revision - s.back);
          const match = s.exact ? ("Exact" as const) : ("NotOlderThan" as const);
          const query = { resourceVersion: String(revision), resourceVersionMatch: match };
          const answer = attempt(
            s.exact ? revision : store.revision,
            () => ask("list", s.scope, query) as ListAnswer,
          );
          if (!("items" in answer)) continue;
          const at = s.exact ? revision : store.revision;
          expect(answer.resourceVersion).toBe(String(at));
          expect(answer.items).toEqual(then(at, s.scope));
        } else if (s.do === "page") {
          const answer = ask("list", s.scope, { limit: s.limit }) as ListAnswer;
          takePage(s.scope, s.limit, then(store.revision, s.scope), answer, store.revision);
        } else if (s.do === "turn") {
          const [page] = tokens.splice(s.which % Math.max(tokens.length, 1), 1);
          if (page === undefined) continue;
          if (s.late === 0) {
            compacted = store.revision;
            store.compact(compacted);
          }
          const { limit, revision, token } = page;
          const answer = attempt(
            revision,
            () => ask("list", page.scope, { limit, continue: token }) as ListAnswer,
          );
          if ("items" in answer) takePage(page.scope, limit, page.rest, answer, revision);
          else {
            // The remainder may be had as it is now.
            const again = (answer.status.metadata as { continue?: string }).continue ?? "";
            const rest = ask("list", page.scope, { continue: again }) as ListAnswer;
            const from = keyOf(page.rest[0] as Stored);
            const now = then(store.revision, page.scope).filter((o) => keyOf(o) >= from);
            expect(rest.items.filter((o) => keyOf(o) >= from)).toEqual(now);
          }
        } else if (s.do === "watch") {
          const revision = Math.max(1, store.revision - s.back);
          const query = s.state ? {} : { resourceVersion: String(revision) };
          const { stream } = ask("watch", s.scope, query) as WatchAnswer;
          const known = new Map(then(revision, s.scope).map((o) => [keyOf(o), text(o)]));
          readers.push({
            scope: s.scope,
            stream,
            known: s.state ? new Map() : known,
            revision: s.state ? store.revision : revision,
            isOver: false,
          });
        } else {
          const reader = readers[s.which % Math.max(readers.length, 1)];
          if (reader === undefined || reader.isOver) continue;
          for (let i = 0; i < s.count && read(reader); i++);
        }
      }
      for (const reader of readers) if (!reader.isOver) while (read(reader));
    }),
    { numRuns: 400 },
  );
  for (const [what, count] of Object.entries(seen)) expect(`${what} ${count > 0}`).toBe(`${what} true`);
});
