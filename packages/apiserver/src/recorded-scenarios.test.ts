/** The server held to what kube-apiserver 1.20.2 answered to the same requests, word for word. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpsConnections } from "./testing/http.ts";
import { recordings } from "./testing/recordings.ts";
import { replayScenario } from "./testing/replay.ts";
import { adminToken, janeToken, realEnv, serveForTest, type TestServer } from "./testing/serve.ts";

// Kubernetes 1.20 writes the second of a write into managedFields, so a write that changes nothing else makes a new
// version when a second has passed. The recording was made within one second: here the wall clock stands still.
const now = realEnv.clock.now();
const env: typeof realEnv = {
  ...realEnv,
  clock: Object.create(realEnv.clock, { now: { value: () => now } }),
};

describe.each([true, false])("with anonymousAuth %s", (anonymousAuth) => {
  const topics = recordings().filter(({ server }) => (server?.anonymousAuth ?? true) === anonymousAuth);
  let server: TestServer;
  let to: HttpsConnections;

  beforeAll(async () => {
    server = await serveForTest(
      {
        controllers: false,
        requireServiceAccounts: true,
        emulatedVersion: "1.20",
        anonymousAuth,
      },
      env,
    );
    to = new HttpsConnections(server.front.url, { ca: server.authority.certificate });
  });
  afterAll(async () => {
    to.close();
    await server.stop();
  });

  describe.each(topics)("$topic", ({ scenarios }) => {
    it.each(scenarios)("$name", async (scenario) => {
      const differences = await replayScenario(scenario, {
        to,
        tokens: { admin: adminToken, user: janeToken },
        compact: (revision) => server.server.registry.context.store.compact(revision),
      });
      expect(differences).toEqual([]);
    });
  });
});
