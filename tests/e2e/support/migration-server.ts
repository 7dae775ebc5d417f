/** An API server over HTTPS with the kinds of OpenShift and Gardener, in which cycles of their controllers run. */
import { fileURLToPath } from "node:url";
import { gardenerCrdsUrl } from "@longshore/migration/gardener";
import { openshiftCrdsUrl } from "@longshore/migration/openshift";
import { systemClock } from "@longshore/runtime";
import { readDefinitions } from "../../../packages/apiserver/src/index.ts";
import { adminToken, serveForTest } from "../../../packages/apiserver/src/testing/serve.ts";
import { type MigrationWorld, preparePlatform } from "../../components/migration/crash-cycles.ts";

/** The world of a cycle, with what a process needs to find it. */
export interface MigrationServer extends MigrationWorld {
  readonly surroundings: { readonly server: string; readonly ca: string; readonly token: string };
  stop(): Promise<void>;
}

const withinMs = 60_000;
const pollMs = 10;

/** Starts one. */
export async function startMigrationServer(): Promise<MigrationServer> {
  const { signal } = new AbortController();
  const crds = [openshiftCrdsUrl, gardenerCrdsUrl].map((url) => fileURLToPath(url));
  const served = await serveForTest({ definitions: await readDefinitions(crds) });
  const { certificate } = served.authority;
  const ca = Buffer.from(certificate).toString("base64");
  const cluster = { server: served.front.url, "certificate-authority-data": ca };
  const world: MigrationServer = {
    kube: served.server.client(),
    signal,
    surroundings: { server: served.front.url, ca: certificate, token: adminToken },
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
    stop: () => served.stop(),
  };
  await preparePlatform(world);
  return world;
}
