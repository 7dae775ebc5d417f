/** Whatever comes in over HTTP, the server has an answer for it, and goes on as before. */
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { type Random, recordingLogger, SeededRandom } from "@longshore/runtime";
import { expect, it } from "vitest";
import { createApiServer } from "../api-server.ts";
import { memoryStore } from "../storage/object-store.ts";
import { aServer } from "../testing/world.ts";
import { createAuthenticator } from "./authentication.ts";
import { createHandler } from "./handler.ts";

const user = { name: "admin", groups: ["system:masters"] };

/** A response that remembers what it was given; a stream loses its client at once. */
class Recorded extends EventEmitter {
  status = 0;
  body = "";
  headersSent = false;
  writeHead(status: number): void {
    this.status = status;
    this.headersSent = true;
  }
  flushHeaders(): void {
    this.emit("close");
  }
  write(): boolean {
    return true;
  }
  end(body?: Buffer): void {
    this.body = body?.toString() ?? "";
  }
}

function aHandler() {
  const { env } = aServer();
  const logger = recordingLogger();
  const world = { ...env, logger };
  const server = createApiServer(world, { store: memoryStore({ historyLimit: 64 }) });
  const handler = createHandler(world, {
    server,
    authenticate: createAuthenticator({ tokens: [{ token: "t", user }] }),
    certificateOf: () => undefined,
  });
  async function send(method: string, url: string, headers: object, body: Uint8Array): Promise<Recorded> {
    const response = new Recorded();
    const request = Object.assign(Readable.from(body.length === 0 ? [] : [body]), { method, url, headers });
    await handler(request as never as IncomingMessage, response as never as ServerResponse);
    return response;
  }
  return { logger, server, send };
}

const words = [
  "",
  "api",
  "apis",
  "v1",
  "apps",
  "storage.k8s.io",
  "policy",
  "namespaces",
  "default",
  "pods",
  "nodes",
  "persistentvolumes",
  "persistentvolumeclaims",
  "storageclasses",
  "volumeattachments",
  "csinodes",
  "configmaps",
  "statefulsets",
  "events",
  "leases",
  "status",
  "scale",
  "binding",
  "eviction",
  "finalize",
  "watch",
  "a",
  "b",
  "%",
  "%2e%2e",
  "..",
  "__proto__",
  "constructor",
  "%00",
  "ü",
  "x".repeat(300),
];
const collections = [
  ...["configmaps", "pods", "persistentvolumeclaims", "events", "secrets"].map(
    (r) => `/api/v1/namespaces/default/${r}`,
  ),
  ...["persistentvolumes", "nodes", "namespaces"].map((r) => `/api/v1/${r}`),
  ...["csinodes", "csidrivers", "storageclasses", "volumeattachments"].map(
    (r) => `/apis/storage.k8s.io/v1/${r}`,
  ),
  "/apis/apps/v1/namespaces/default/statefulsets",
  "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
  "/apis/coordination.k8s.io/v1/namespaces/default/leases",
];
const subresources = ["", "", "", "/status", "/scale", "/eviction", "/binding", "/finalize"];
const members = [
  "metadata",
  "spec",
  "status",
  "name",
  "namespace",
  "labels",
  "annotations",
  "finalizers",
  "uid",
  "kind",
  "apiVersion",
  "resourceVersion",
  "ownerReferences",
  "deletionTimestamp",
  "containers",
  "volumes",
  "nodeName",
  "capacity",
  "storage",
  "accessModes",
  "claimRef",
  "resources",
  "requests",
  "drivers",
  "selector",
  "matchLabels",
  "template",
  "replicas",
  "source",
  "data",
  "target",
  "conditions",
  "type",
  "$patch",
  "$retainKeys",
  "$setElementOrder/containers",
  "$deleteFromPrimitiveList/finalizers",
  "op",
  "path",
  "from",
  "value",
  "__proto__",
  "constructor",
  "toString",
];
const scalars = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  "",
  "a",
  "b",
  "default",
  "1Gi",
  "-1Gi",
  "1e999999999",
  "delete",
  "replace",
  "merge",
  "v1",
  "Pod",
  "add",
  "remove",
  "copy",
  "move",
  "test",
  "/metadata/labels",
  "/metadata",
  "/spec/containers/0",
  "2026-01-01T00:00:00Z",
  "9999999999999999999999",
  "ReadWriteOnce",
  "\u0000",
  "\ud800",
];
const queryKeys = [
  "labelSelector",
  "fieldSelector",
  "limit",
  "continue",
  "resourceVersion",
  "resourceVersionMatch",
  "watch",
  "timeoutSeconds",
  "dryRun",
  "fieldManager",
  "propagationPolicy",
  "gracePeriodSeconds",
  "includeObject",
  "pretty",
];
const queryValues = [
  "",
  "1",
  "0",
  "-1",
  "999999999999999",
  "a",
  "a=b",
  "metadata.name=a",
  "Exact",
  "NotOlderThan",
  "All",
  "Orphan",
  "Foreground",
  "true",
  "None",
  "%",
  "((",
  "a in (b",
  "e30",
  "constructor=1",
];
const types = [
  "application/json",
  "application/yaml",
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
  "application/vnd.kubernetes.protobuf",
  "x/y",
  "",
];
const accepts = [
  "application/json",
  "*/*",
  "application/yaml",
  "x",
  "application/json;as=Table;v=v1;g=meta.k8s.io",
  "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
];

function draw<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length, "draw")] as T;
}

function aValue(random: Random, depth: number): unknown {
  const form = random.below(depth > 5 ? 2 : 6, "form");
  if (form < 2) return draw(random, scalars);
  const size = random.below(4, "size");
  if (form === 2) return Array.from({ length: size }, () => aValue(random, depth + 1));
  // Made from pairs, so that a name such as __proto__ is a member as JSON.parse makes it.
  return Object.fromEntries(
    Array.from({ length: size }, () => [draw(random, members), aValue(random, depth + 1)]),
  );
}

const methods = [
  "GET",
  "POST",
  "POST",
  "POST",
  "PUT",
  "PATCH",
  "PATCH",
  "PATCH",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "BREW",
];

/** Mostly a path on which the method means something. */
function aPath(random: Random, method: string): string {
  if (random.below(4, "path") === 0) {
    return `/${Array.from({ length: random.below(8, "parts") }, () => draw(random, words)).join("/")}`;
  }
  const collection = draw(random, collections);
  if (method === "POST" && random.below(4, "named") > 0) return collection;
  return `${collection}/a${draw(random, subresources)}`;
}

const seeds: readonly object[] = [
  { metadata: { name: "a" }, data: { a: "1" } },
  {
    metadata: { name: "a" },
    spec: { containers: [{ name: "a", image: "i", env: [{ name: "A" }] }], volumes: [{ name: "v" }] },
  },
  {
    metadata: { name: "a" },
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/a" } },
  },
  {
    metadata: { name: "a" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  },
  { metadata: { name: "a" }, spec: { drivers: [{ name: "d", nodeID: "n", topologyKeys: null }] } },
  { metadata: { name: "a" }, spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "a" } } },
  {
    metadata: { name: "a" },
    spec: {
      replicas: 1,
      serviceName: "a",
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "a", image: "i" }] } },
    },
  },
  { metadata: { name: "a" }, target: { kind: "Node", name: "a" } },
  {
    metadata: { name: "a" },
    provisioner: "d",
    allowedTopologies: [{ matchLabelExpressions: [{ key: "a", values: ["b"] }] }],
  },
];

/** A good object in which some values are others. */
function mutated(random: Random, value: unknown): unknown {
  if (random.below(12, "change") === 0) return aValue(random, 3);
  if (Array.isArray(value)) return value.map((item) => mutated(random, item));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, mutated(random, member)]);
  if (random.below(6, "more") === 0) entries.push([draw(random, members), aValue(random, 2)]);
  return Object.fromEntries(entries);
}

function aBody(random: Random): Uint8Array {
  switch (random.below(8, "body")) {
    case 0:
      return Buffer.alloc(0);
    case 1:
      return Buffer.from(Array.from({ length: random.below(64, "length") }, () => random.below(256, "byte")));
    case 2:
      return Buffer.concat([
        Buffer.from("k8s\0"),
        Buffer.from(Array.from({ length: random.below(64, "length") }, () => random.below(256, "byte"))),
      ]);
    case 3:
      return Buffer.from(JSON.stringify(aValue(random, 0)) ?? "");
    case 4:
      return Buffer.from(
        JSON.stringify([
          mutated(random, { op: draw(random, scalars), path: draw(random, scalars), value: 1 }),
        ]),
      );
    default:
      return Buffer.from(JSON.stringify(mutated(random, draw(random, seeds))) ?? "");
  }
}

it("answers twenty thousand pieces of garbage without failing", async () => {
  const { logger, send } = aHandler();
  const random = new SeededRandom(20);
  const codes = new Map<number, number>();
  const failures = new Map<string, string>();
  for (let i = 0; i < 20_000; i++) {
    const pairs = Array.from(
      { length: random.below(3, "pairs") },
      () => `${draw(random, queryKeys)}=${draw(random, queryValues)}`,
    );
    const method = draw(random, methods);
    const path = aPath(random, method);
    const headers = {
      authorization: random.below(50, "token") === 0 ? "Bearer x" : "Bearer t",
      accept: random.below(4, "accept") === 0 ? draw(random, accepts) : "*/*",
      "content-type":
        method === "PATCH"
          ? draw(random, types.slice(2, 5))
          : random.below(4, "type") === 0
            ? draw(random, types)
            : "application/json",
    };
    const url = `${path}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`;
    const { status, body } = await send(method, url, headers, aBody(random));
    codes.set(status, (codes.get(status) ?? 0) + 1);
    // The reference too answers 500 to DeleteOptions, patches and versions that it cannot read, and 504 to a version to come.
    const allowed = status < 500 || (status === 500 && !body.includes("InternalError")) || status === 504;
    if (!allowed) failures.set(body.slice(0, 300), `${method} ${url}`);
  }
  expect([...failures]).toEqual([]);
  expect(logger.lines.filter((line) => line.level === "error")).toEqual([]);
  // It was not refused at the door: every kind of answer was given many times.
  for (const code of [200, 201, 400, 404, 405, 409, 415, 422])
    expect(codes.get(code) ?? 0).toBeGreaterThan(20);
}, 30_000);

it.each([
  ["lists in lists", "application/json", "[".repeat(100_000) + "]".repeat(100_000), 400],
  ["objects in objects", "application/json", `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`, 400],
  ["lists in YAML", "application/yaml", "[".repeat(5_000), 400],
  [
    "aliases that name each other",
    "application/yaml",
    `a0: &a0 [x, x]\n${Array.from({ length: 40 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]\n`).join("")}`,
    400,
  ],
])("refuses %s", async (_name, type, body, code) => {
  const { logger, send } = aHandler();
  const headers = { authorization: "Bearer t", "content-type": type };
  const answer = await send("POST", "/api/v1/namespaces/default/configmaps", headers, Buffer.from(body));
  expect(answer.status).toBe(code);
  expect(logger.lines).toEqual([]);
});

it("refuses a patch whose copies double the object again and again", async () => {
  const { send, server } = aHandler();
  const path = "/api/v1/namespaces/default/configmaps";
  const headers = { authorization: "Bearer t", "content-type": "application/json" };
  await send("POST", path, headers, Buffer.from('{"metadata":{"name":"a","labels":{"a":"1"}}}'));
  const doubling = Array.from({ length: 60 }, (_, i) => ({
    op: "copy",
    from: "/metadata",
    path: `/metadata/c${i}`,
  }));
  const patch = { ...headers, "content-type": "application/json-patch+json" };
  const answer = await send("PATCH", `${path}/a`, patch, Buffer.from(JSON.stringify(doubling)));
  expect(answer.status).toBe(422);
  expect(server.registry.context.store.table("configmaps").get("default", "a")?.metadata.labels).toEqual({
    a: "1",
  });
});
