/** The server held to what kube-apiserver 1.20.2 answered to the same requests. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpsConnections } from "./testing/http.ts";
import { type Recording, replayScenario } from "./testing/replay.ts";
import { adminToken, janeToken, serveForTest, type TestServer } from "./testing/serve.ts";

const topics = [
  "access",
  "access-no-anonymous",
  "concurrency",
  "core-objects",
  "custom-resources",
  "deletion",
  "discovery",
  "dry-run",
  "flows",
  "list",
  "negotiation-errors",
  "nodes-pods",
  "patch",
  "persistentvolumeclaims",
  "persistentvolumes",
  "protobuf",
  "server-side-apply",
  "storage-group",
  "tables",
  "watch",
  "workloads",
] as const;

/** Scenarios that the server does not pass, with the reason. One that passes must leave this list. */
const notYet: Readonly<Record<string, string>> = {};

/** The recording beside the checkout where it is, else the copy in the repository. */
function recordingOf(topic: string): Recording {
  const path = (relative: string) => fileURLToPath(new URL(`../../../${relative}`, import.meta.url));
  const shared = path(`../shared/vectors/apiserver/${topic}.json`);
  if (existsSync(shared)) return JSON.parse(readFileSync(shared, "utf8"));
  return JSON.parse(
    gunzipSync(readFileSync(path(`tests/vectors-data/apiserver/${topic}.json.gz`))).toString(),
  );
}

/** The server as the recorded one was started, by whether anonymous requests are let in. */
const servers = new Map<boolean, { readonly server: TestServer; readonly to: HttpsConnections }>();
beforeAll(async () => {
  for (const anonymousAuth of [true, false]) {
    const server = await serveForTest({
      controllers: false,
      requireServiceAccounts: true,
      emulatedVersion: "1.20",
      anonymousAuth,
    });
    const to = new HttpsConnections(server.front.url, { ca: server.authority.certificate });
    servers.set(anonymousAuth, { server, to });
  }
});
afterAll(async () => {
  for (const { server, to } of servers.values()) {
    to.close();
    await server.stop();
  }
});

describe.each(topics)("%s", (topic) => {
  const recording = recordingOf(topic);
  it.each(recording.scenarios)("$name", async (scenario) => {
    const { server, to } = servers.get(recording.server?.anonymousAuth ?? true) as NonNullable<
      ReturnType<typeof servers.get>
    >;
    const differences = await replayScenario(scenario, {
      to,
      tokens: { admin: adminToken, user: janeToken },
      compact: (revision) => server.server.registry.context.store.compact(revision),
    });
    const reason = notYet[`${topic}/${scenario.name}`];
    if (reason === undefined) expect(differences).toEqual([]);
    else expect(differences, `passes now, although listed as: ${reason}`).not.toEqual([]);
  });
});

it("every scenario that is not expected to pass is one that was recorded", () => {
  const recorded = new Set(topics.flatMap((t) => recordingOf(t).scenarios.map((s) => `${t}/${s.name}`)));
  expect(Object.keys(notYet).filter((name) => !recorded.has(name))).toEqual([]);
});
