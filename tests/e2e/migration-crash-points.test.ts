/**
 * The controllers of OpenShift and Gardener in processes of their own, on an API server over HTTPS, killed with `kill -9` at each
 * point between their requests, before one is sent and after its answer, and followed by another process: gates, conditions,
 * annotations and classes end as if nothing had happened (docs/behaviour/migration-controllers.md A4, B6).
 */

import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { gardenerCrdsUrl } from "@longshore/migration/gardener";
import { openshiftCrdsUrl } from "@longshore/migration/openshift";
import { systemClock } from "@longshore/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readDefinitions } from "../../packages/apiserver/src/index.ts";
import { adminToken, serveForTest, type TestServer } from "../../packages/apiserver/src/testing/serve.ts";
import {
  type MigrationCycleName,
  type MigrationWorld,
  migrationCycles,
  preparePlatform,
} from "../components/migration/crash-cycles.ts";
import { killAtEveryPoint } from "./support/kill-at-points.ts";
import { MortalProcesses } from "./support/mortal-process.ts";

const { signal } = new AbortController();
const withinMs = 60_000;
const pollMs = 10;
/** Time for one controller. */
const budgetMs = 240_000;

let served: TestServer;
let processes: MortalProcesses;
let world: MigrationWorld;

beforeAll(async () => {
  const definitions = await readDefinitions(
    [openshiftCrdsUrl, gardenerCrdsUrl].map((url) => fileURLToPath(url)),
  );
  [served, processes] = await Promise.all([serveForTest({ definitions }), MortalProcesses.prepare()]);
  const ca = Buffer.from(served.authority.certificate).toString("base64");
  const cluster = { server: served.front.url, "certificate-authority-data": ca };
  world = {
    kube: served.server.client(),
    signal,
    shootKubeconfig: JSON.stringify({
      clusters: [{ name: "c", cluster }],
      users: [{ name: "u", user: { token: adminToken } }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    }),
    async eventually(what, condition) {
      const untilMs = systemClock.monotonicMs() + withinMs;
      for (;;) {
        const found = await condition();
        if (found !== undefined && found !== false) return found;
        if (systemClock.monotonicMs() >= untilMs) throw new Error(`not within a minute: ${what}`);
        await systemClock.sleep(pollMs, signal);
      }
    },
  };
  await preparePlatform(world);
});
afterAll(async () => {
  await processes?.stop();
  await served?.stop();
});

test.each<[MigrationCycleName, readonly string[]]>([
  ["feature-gate-operator", ["update KubeAPIServer", "create KubeletConfig", "delete KubeletConfig"]],
  ["feature-gate-operator with two sets", ["list CSINode", "create KubeletConfig", "delete KubeletConfig"]],
  ["migration-controller", ["get Secret", "list Node", "delete StorageClass", "patch Deployment"]],
])(
  "the %s survives kill -9 at every point between its requests",
  async (migration, made) => {
    let undisturbed: readonly unknown[] | undefined;
    const report = await killAtEveryPoint(processes, {
      name: migration,
      surroundings: {
        migration,
        server: served.front.url,
        ca: served.authority.certificate,
        token: adminToken,
      },
      async cycle(id) {
        const rests = await migrationCycles[migration](world, id);
        undisturbed ??= rests;
        const at = rests.findIndex((rest, index) => !isDeepStrictEqual(rest, undisturbed?.[index]));
        if (at !== -1) throw new Error(`another end: ${JSON.stringify(rests[at])}`);
      },
      budgetMs,
    });
    expect(report.failures).toEqual([]);
    expect(report.calls).toEqual(expect.arrayContaining([...made]));
  },
  600_000,
);
