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

const noReviews = "reviews of access and of tokens are not served";
const noRoles = "there is no RBAC: components may do everything, others read what is open";
const noImpersonation = "nobody can act as somebody else";
const noEventsGroup = "events are served in the core group only";
const noTokens = "service accounts get no tokens";
const noCustomResources = "custom resources are not served";
const noApply = "server-side apply is not supported, and no managed fields are kept";

/** Scenarios that the server does not pass, with the reason. One that passes must leave this list. */
const notYet: Readonly<Record<string, string>> = {
  "access/no-rights": noReviews,
  "access/role": noRoles,
  "access/self-reviews": noReviews,
  "access/token-review": noReviews,
  "access/impersonation": noImpersonation,
  "core-objects/service-account": noTokens,
  "custom-resources/definition-lifecycle": noCustomResources,
  "custom-resources/schema-validation": noCustomResources,
  "custom-resources/pruning-and-defaults": noCustomResources,
  "custom-resources/status-subresource": noCustomResources,
  "custom-resources/without-status-subresource": noCustomResources,
  "custom-resources/patches": noCustomResources,
  "custom-resources/cluster-scoped": noCustomResources,
  "discovery/group-list": noEventsGroup,
  "discovery/core-resources": noTokens,
  "dry-run/update-and-patch": noApply,
  "server-side-apply/create-and-repeat": noApply,
  "server-side-apply/conflict-and-force": noApply,
  "server-side-apply/conflict-with-update": noApply,
  "server-side-apply/bad-requests": noApply,
  "watch/too-old": noCustomResources,
};

/** The recording beside the checkout where it is, else the copy in the repository. */
function recordingOf(topic: string): Recording {
  const path = (relative: string) => fileURLToPath(new URL(`../../../${relative}`, import.meta.url));
  const shared = path(`../shared/vectors/apiserver/${topic}.json`);
  if (existsSync(shared)) return JSON.parse(readFileSync(shared, "utf8"));
  return JSON.parse(
    gunzipSync(readFileSync(path(`tests/vectors-data/apiserver/${topic}.json.gz`))).toString(),
  );
}

let server: TestServer;
let to: HttpsConnections;
beforeAll(async () => {
  server = await serveForTest({ controllers: false, requireServiceAccounts: true, emulatedVersion: "1.20" });
  to = new HttpsConnections(server.front.url, { ca: server.authority.certificate });
});
afterAll(async () => {
  to.close();
  await server.stop();
});

describe.each(topics)("%s", (topic) => {
  it.each(recordingOf(topic).scenarios)("$name", async (scenario) => {
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
