import { type ConfigMap, resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { ApiQuery, WatchAnswer, WatchItem, WatchStream } from "../api/api-request.ts";
import { aServer } from "../testing/world.ts";

const signal = new AbortController().signal;
const aConfigMap = (name: string, labels: Readonly<Record<string, string>> = {}): ConfigMap => ({
  metadata: { name, namespace: "default", labels },
});

function watched(options: { readonly historyLimit?: number } = {}) {
  const world = aServer(options);
  const watch = (query: ApiQuery): WatchStream => {
    const target = { group: "", version: "v1", resource: "configmaps", namespace: "default" };
    const user = { name: "t", groups: [] };
    const answer = world.server.registry.handle({ verb: "watch", ...target, query, user });
    return (answer as WatchAnswer).stream;
  };
  const create = (name: string, labels = {}) =>
    world.kube.create(resources.configMaps, aConfigMap(name, labels), { signal });
  return { ...world, watch, create };
}

function shown(item: WatchItem | "ended" | undefined): string {
  if (item === undefined || item === "ended") return String(item);
  if (item.type === "BOOKMARK") {
    return `BOOKMARK ${item.resourceVersion}${item.initialEventsEnd === true ? " END" : ""}`;
  }
  if (item.type === "ERROR") return `ERROR ${(item.status as { code?: number }).code}`;
  return `${item.type} ${item.object.metadata.name}`;
}

describe("a watch", () => {
  it("without a version sends first what exists", async () => {
    const { watch, create } = watched();
    await create("a");
    const stream = watch({});
    await create("b");
    expect([stream.take(), stream.take(), stream.take()].map(shown)).toEqual([
      "ADDED a",
      "ADDED b",
      "undefined",
    ]);
  });

  it("sees objects come into the selection and leave it", async () => {
    const { watch, create, kube, store } = watched();
    const stream = watch({ resourceVersion: String(store.revision), labelSelector: "app=web" });
    const made = await create("a");
    const web = { ...made, metadata: { ...made.metadata, labels: { app: "web" } } };
    const changed = await kube.update(resources.configMaps, web, { signal });
    const more = await kube.update(resources.configMaps, { ...changed, data: { a: "1" } }, { signal });
    await kube.update(
      resources.configMaps,
      { ...more, metadata: { ...more.metadata, labels: {} } },
      { signal },
    );
    const items = [stream.take(), stream.take(), stream.take(), stream.take()];
    expect(items.map(shown)).toEqual(["ADDED a", "MODIFIED a", "DELETED a", "undefined"]);
    expect(items[2]).toMatchObject({ object: { metadata: { resourceVersion: String(store.revision) } } });
  });

  it("of a version that is forgotten opens, says 410, and ends", async () => {
    const { watch, create, store } = watched();
    await create("a");
    store.compact(store.revision);
    const stream = watch({ resourceVersion: "1" });
    expect([await stream.next(), await stream.next()].map(shown)).toEqual(["ERROR 410", "undefined"]);
  });

  it("that is read too slowly ends with 410, and costs nothing meanwhile", async () => {
    const { watch, create, store } = watched({ historyLimit: 8 });
    const slow = watch({ resourceVersion: String(store.revision) });
    await create("first");
    expect(shown(slow.take())).toBe("ADDED first");
    for (let i = 0; i < 20; i++) await create(`more-${i}`);
    expect([slow.take(), slow.take()].map(shown)).toEqual(["ERROR 410", "ended"]);
    expect(await slow.next()).toBeUndefined();
  });

  it("gets a bookmark every minute, after what it has to read", async () => {
    const { watch, create, store, clock } = watched();
    const stream = watch({ resourceVersion: String(store.revision), allowWatchBookmarks: true });
    const without = watch({ resourceVersion: String(store.revision) });
    await create("a");
    await clock.advance(60_000);
    expect([stream.take(), stream.take(), stream.take()].map(shown)).toEqual([
      "ADDED a",
      `BOOKMARK ${store.revision}`,
      "undefined",
    ]);
    const waiting = stream.next();
    await clock.advance(60_000);
    expect(shown(await waiting)).toBe(`BOOKMARK ${store.revision}`);
    expect([without.take(), without.take()].map(shown)).toEqual(["ADDED a", "undefined"]);
  });

  it("ends when its time is over, with a last bookmark two seconds before", async () => {
    const { watch, store, clock } = watched();
    const stream = watch({ resourceVersion: "0", allowWatchBookmarks: true, timeoutSeconds: 5 });
    await clock.advance(2_999);
    expect(stream.take()).toBeUndefined();
    await clock.advance(1);
    expect(shown(stream.take())).toBe(`BOOKMARK ${store.revision}`);
    await clock.advance(1_999);
    expect(stream.take()).toBeUndefined();
    await clock.advance(1);
    expect(await stream.next()).toBeUndefined();
  });

  it("ends with the server, also for one who waits", async () => {
    const { watch, server } = watched();
    const waiting = watch({}).next();
    await server.stop();
    expect(await waiting).toBeUndefined();
  });

  it("gives every one of many readers the same changes in the same order", async () => {
    const { watch, create, store } = watched();
    const streams = Array.from({ length: 100 }, () => watch({ resourceVersion: String(store.revision) }));
    for (const name of ["a", "b", "c"]) await create(name);
    for (const stream of streams) {
      expect([stream.take(), stream.take(), stream.take()].map(shown)).toEqual([
        "ADDED a",
        "ADDED b",
        "ADDED c",
      ]);
    }
  });

  it("of a version that is still to come waits for it in silence", async () => {
    const { watch, create, store } = watched();
    const stream = watch({ resourceVersion: String(store.revision + 2) });
    for (const name of ["a", "b", "c"]) await create(name);
    expect([stream.take(), stream.take()].map(shown)).toEqual(["ADDED c", "undefined"]);
  });

  it("whose time is over before it began ends at once", async () => {
    const { watch, clock } = watched();
    const stream = watch({ resourceVersion: "0", timeoutSeconds: -1 });
    await clock.advance(0);
    expect(await stream.next()).toBeUndefined();
  });

  it("sends a state of any size in pages, all of one version", async () => {
    const { watch, create, store } = watched();
    const { namespace } = aConfigMap("x").metadata ?? {};
    for (let i = 0; i < 450; i++) await create(`c${String(i).padStart(3, "0")}`);
    const at = store.revision;
    const stream = watch({});
    const seen = [shown(stream.take())];
    store.commit([{ resource: "configmaps", namespace: namespace ?? "", name: "c300" }]);
    await create("c0001");
    for (let item = stream.take(); item !== undefined; item = stream.take()) seen.push(shown(item));
    const state = Array.from({ length: 450 }, (_, i) => `ADDED c${String(i).padStart(3, "0")}`);
    expect(seen).toEqual([...state, "DELETED c300", "ADDED c0001"]);
    expect(store.revision).toBe(at + 2);
  });

  it("whose state is forgotten while it is read says 410", async () => {
    const { watch, create, store } = watched();
    for (let i = 0; i < 250; i++) await create(`c${i}`);
    const stream = watch({});
    expect(shown(stream.take())).toMatch(/^ADDED/);
    await create("later");
    store.compact(store.revision);
    const rest: string[] = [];
    for (let item = stream.take(); item !== "ended"; item = stream.take()) rest.push(shown(item));
    expect(rest.at(-1)).toBe("ERROR 410");
    expect(rest).toHaveLength(200);
  });

  it("calls its owner when it has no reader and what it would read is compacted", async () => {
    const { watch, create, store } = watched({ historyLimit: 8 });
    const stream = watch({ resourceVersion: String(store.revision) });
    let lost = 0;
    stream.onLost = () => lost++;
    for (let i = 0; i < 8; i++) await create(`c${i}`);
    expect(lost).toBe(0);
    for (let i = 8; i < 12; i++) await create(`c${i}`);
    expect(lost).toBeGreaterThan(0);
  });
});

describe("a streamed list", () => {
  const query = { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" };

  it.each([
    [{}, ["ADDED a", "ADDED b"]],
    [{ allowWatchBookmarks: true }, ["ADDED a", "ADDED b", "BOOKMARK RV END"]],
    [{ allowWatchBookmarks: true, resourceVersion: "1" }, ["ADDED a", "ADDED b", "BOOKMARK RV END"]],
    [{ allowWatchBookmarks: true, labelSelector: "x" }, ["BOOKMARK RV END"]],
    [{ allowWatchBookmarks: true, sendInitialEvents: false }, []],
    [{ resourceVersion: "RV-1", sendInitialEvents: false }, ["ADDED b"]],
  ])("%j begins with %j", async (rest, expected) => {
    const { watch, create, store } = watched();
    await create("a");
    await create("b");
    const at = store.revision;
    const version = "resourceVersion" in rest ? rest.resourceVersion : undefined;
    const stream = watch({
      ...query,
      ...rest,
      ...(version === undefined ? {} : { resourceVersion: version === "RV-1" ? String(at - 1) : version }),
    });
    await create("c");
    const seen: string[] = [];
    for (let item = stream.take(); item !== undefined; item = stream.take()) seen.push(shown(item));
    const later = "labelSelector" in rest ? [] : ["ADDED c"];
    expect(seen).toEqual([...expected.map((text) => text.replace("RV", String(at))), ...later]);
  });

  it.each([
    [{ sendInitialEvents: true }, /sendInitialEvents requires setting resourceVersionMatch to NotOlderThan/],
    [{ resourceVersionMatch: "NotOlderThan" }, /forbidden for watch unless sendInitialEvents is provided/],
    [
      { ...query, resourceVersionMatch: "Exact" },
      /Unsupported value: "Exact": supported values: "NotOlderThan"/,
    ],
    [{ ...query, continue: "x" }, /forbidden when continue is provided/],
    [{ ...query, resourceVersion: "999" }, /Too large resource version: 999/],
  ])("%j is refused", (rest, message) => {
    const { watch } = watched();
    expect(() => watch(rest)).toThrow(message);
  });
});
