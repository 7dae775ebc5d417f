/**
 * The recordings that the embedded API server is held to, replayed by the same replayer against the real
 * kube-apiserver: so that both stay honest.
 */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpsConnections } from "../../packages/apiserver/src/testing/http.ts";
import { recordings } from "../../packages/apiserver/src/testing/recordings.ts";
import { replayScenario } from "../../packages/apiserver/src/testing/replay.ts";
import { type ControlPlane, startControlPlane } from "./support/index.ts";

const jane = { name: "jane", groups: ["devs"] };

describe.each([true, false])("kube-apiserver with anonymousAuth %s", (anonymousAuth) => {
  const topics = recordings().filter(({ server }) => (server?.anonymousAuth ?? true) === anonymousAuth);
  let plane: ControlPlane;
  let to: HttpsConnections;

  beforeAll(async () => {
    plane = await startControlPlane({
      users: [jane],
      requireServiceAccounts: true,
      apiServerArgs: [`--anonymous-auth=${anonymousAuth}`],
    });
    to = new HttpsConnections(plane.url, { ca: await readFile(plane.caPath, "utf8") });
  });
  afterAll(async () => {
    to.close();
    await plane.stop();
  });

  describe.each(topics)("$topic", ({ scenarios }) => {
    it.each(scenarios)("$name", async (scenario) => {
      const found = await replayScenario(scenario, {
        to,
        tokens: { admin: plane.adminToken, user: plane.tokens[jane.name] ?? "" },
        compact: (revision) => plane.compact(revision),
        waitMsMax: 10_000,
        pauses: true,
      });
      expect(found).toEqual([]);
    });
  });
});
