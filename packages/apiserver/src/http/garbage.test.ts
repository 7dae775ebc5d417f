/** The server answers any HTTP input, and keeps working. */
import { recordingLogger, SeededRandom } from "@longshore/runtime";
import { expect, it } from "vitest";
import { createApiServer } from "../api-server.ts";
import { memoryStore } from "../storage/object-store.ts";
import { fakeExchange } from "../testing/fake-exchange.ts";
import { garbage } from "../testing/garbage.ts";
import { aServer } from "../testing/world.ts";

const user = { name: "admin", groups: ["system:masters"] };

function aHandler() {
  const { env } = aServer();
  const logger = recordingLogger();
  const world = { ...env, logger };
  const server = createApiServer(world, {
    store: memoryStore({ historyLimit: 64 }),
    tokens: [{ token: "t", user }],
    anonymousAuth: true,
  });
  return { logger, server, send: fakeExchange(world, server) };
}

it("answers twenty thousand pieces of garbage without failing", async () => {
  const { logger, send } = aHandler();
  const random = new SeededRandom(20);
  const codes = new Map<number, number>();
  const failures = new Map<string, string>();
  for (let i = 0; i < 20_000; i++) {
    const { method, url, headers, body: sent } = garbage(random);
    const { status, body } = await send(method, url, headers, sent);
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
}, 120_000);

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
