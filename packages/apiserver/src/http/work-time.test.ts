/** A request that runs out of time is answered 504 and changes nothing, or it is answered as done; others go on. */
import { resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { objectToProtobuf } from "../schema/object-to-protobuf.ts";
import { aCustomKind } from "../testing/custom-kinds.ts";
import { corePath, many, members } from "../testing/heavy-requests/heavy-request.ts";
import { slowServer } from "../testing/slow-server.ts";

const maps = corePath("configmaps");
const data = (count: number) => members(count, (i) => [`k${i}`, "v"]);
const map = (name: string, count: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data: data(count),
});
const large = map("large", 3000);

async function aWorld() {
  const world = slowServer();
  expect((await world.send("POST", maps, map("there", 1000))).status).toBe(201);
  return world;
}

async function aFullWorld() {
  const world = await aWorld();
  for (let i = 0; i < 3000; i++) await world.send("POST", maps, map(`m${i}`, 0));
  return world;
}

type Ask = readonly [name: string, method: string, path: string, type: string, body: unknown, status: number];

const writes: readonly Ask[] = [
  ["a create in JSON", "POST", maps, "application/json", large, 201],
  ["a create in YAML", "POST", maps, "application/yaml", JSON.stringify(large), 201],
  [
    "a create in protobuf",
    "POST",
    maps,
    "application/vnd.kubernetes.protobuf",
    objectToProtobuf(large as never),
    201,
  ],
  ["an update", "PUT", `${maps}/there`, "application/json", map("there", 3000), 200],
  ...(
    [
      ["merge-patch", { data: data(3000) }],
      ["strategic-merge-patch", { data: data(3000) }],
      ["json-patch", many(3000, (i) => ({ op: "add", path: `/data/n${i}`, value: "w" }))],
    ] as const
  ).map(
    ([type, body]): Ask => [`a ${type}`, "PATCH", `${maps}/there`, `application/${type}+json`, body, 200],
  ),
  [
    "an apply",
    "PATCH",
    `${maps}/there?fieldManager=a&force=true`,
    "application/apply-patch+yaml",
    JSON.stringify(map("there", 3000)),
    200,
  ],
  [
    "an apply of what is not there",
    "PATCH",
    `${maps}/large?fieldManager=a`,
    "application/apply-patch+yaml",
    JSON.stringify(large),
    201,
  ],
  ["a dry run", "POST", `${maps}?dryRun=All`, "application/json", large, 201],
];

describe("a write that runs out of time", () => {
  it.each(writes)("%s", async (_name, method, path, type, body, status) => {
    const { clock, logger, store, send } = await aWorld();
    const { revision } = store;
    clock.jumpAfter(1);
    const late = await send(method, path, body, type);
    expect(late).toMatchObject({ status: 504, body: { kind: "Status", reason: "Timeout", code: 504 } });
    expect(store.revision).toBe(revision);
    // Others are served, and the same request is when it is sent again.
    expect((await send("GET", `${maps}/there`)).status).toBe(200);
    expect((await send(method, path, body, type)).status).toBe(status);
    expect(logger.lines).toEqual([]);
  });

  it.each(writes.filter(([, , path]) => !path.includes("dryRun")))(
    "is done and reported, or not done, whenever the time ends: %s",
    async (_name, method, path, type, body, status) => {
      const { clock, store, send } = await aWorld();
      const { revision } = store;
      let ended = 0;
      const ask = () => {
        clock.jumpAfter(++ended);
        return send(method, path, body, type);
      };
      let answer = await ask();
      for (; answer.status === 504; answer = await ask()) expect(store.revision).toBe(revision);
      // With a jump behind the last check, it is done.
      expect(answer.status).toBe(status);
      expect(store.revision).toBe(revision + 1);
      expect(ended).toBeGreaterThan(5);
    },
  );
});

describe("a read that runs out of time", () => {
  it("is answered so, where it selects and where its whole answer is made at once", async () => {
    const { clock, exchange, send } = await aFullWorld();
    const asking = [
      [`${maps}?labelSelector=a`, "application/json"],
      [maps, "application/vnd.kubernetes.protobuf"],
    ] as const;
    for (const [path, accept] of asking) {
      const ask = () => exchange("GET", path, { authorization: "Bearer t", accept });
      expect((await ask()).status).toBe(200);
      clock.jumpAfter(accept.endsWith("protobuf") ? 2 : 1);
      expect((await ask()).status).toBe(504);
      expect((await ask()).status).toBe(200);
    }
    expect((await send("GET", `${maps}/there`)).status).toBe(200);
  });

  it("is no watch", async () => {
    const { clock, exchange } = await aFullWorld();
    clock.jumpAfter(0);
    const url = `${maps}?watch=true&labelSelector=!a`;
    const answer = await exchange("GET", url, { authorization: "Bearer t" });
    expect(answer.status).toBe(200);
    expect(answer.body.split('"type":"ADDED"').length - 1).toBe(3001);
    expect(clock.readings).toBeGreaterThan(0);
  });
});

it("a deletion of many ends between two of them, and goes on when it is asked for again", async () => {
  const { clock, store, send } = await aWorld();
  for (let i = 0; i < 9; i++) await send("POST", maps, map(`m${i}`, 0));
  const { revision } = store;
  clock.jumpAfter(4);
  expect((await send("DELETE", maps)).status).toBe(504);
  // The first reading is the beginning; each of the others comes before a deletion.
  expect(store.revision - revision).toBe(3);
  expect((await send("DELETE", maps)).status).toBe(200);
  expect(store.table("configmaps").list("default")).toEqual([]);
});

it("what a definition leaves behind is deleted in as many turns as it takes", async () => {
  const { clock, logger, store, send } = slowServer();
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const things = "/apis/x.example.com/v1/namespaces/default/things";
  await send("POST", definitions, aCustomKind("things", "Thing", "Namespaced"));
  await clock.advance(10);
  for (let i = 0; i < 9; i++) {
    const thing = { apiVersion: "x.example.com/v1", kind: "Thing", metadata: { name: `t${i}` } };
    expect((await send("POST", things, thing)).status).toBe(201);
  }
  clock.jumpEach(4);
  expect((await send("DELETE", `${definitions}/things.x.example.com`)).status).toBe(200);
  await new Promise(setImmediate);
  const warnings = () => logger.lines.filter(({ level }) => level === "warn").length;
  const table = store.table("things.x.example.com");
  expect(table.size).toBeGreaterThan(0);
  expect(warnings()).toBe(1);
  await clock.advance(10);
  clock.jumpAfter(Number.POSITIVE_INFINITY);
  expect(table.size).toBe(0);
  expect(warnings()).toBeGreaterThan(2);
  expect((await send("GET", `${definitions}/things.x.example.com`)).status).toBe(404);
});

it("a client in the same process is held to it, too", async () => {
  const { clock, server, store } = await aWorld();
  const kube = server.client();
  const { revision } = store;
  const { signal } = new AbortController();
  const object = {
    ...large,
    apiVersion: "v1" as const,
    kind: "ConfigMap" as const,
    metadata: { name: "large", namespace: "default" },
  };
  clock.jumpAfter(1);
  await expect(kube.create(resources.configMaps, object, { signal })).rejects.toMatchObject({
    code: 504,
    reason: "Timeout",
  });
  expect(store.revision).toBe(revision);
  await kube.create(resources.configMaps, object, { signal });
  expect(store.revision).toBe(revision + 1);
});
