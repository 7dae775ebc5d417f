/**
 * Every component under its own account, with exactly the rights that a deployment grants it, through a whole cycle of
 * its work on the embedded API server: nothing may be refused. Then once more without each single right: something must
 * be refused, or the right is not needed.
 */
import { fileURLToPath } from "node:url";
import {
  type ApiServer,
  createApiServer,
  memoryStore,
  readDefinitions,
  type UserInfo,
} from "@longshore/apiserver";
import { inProcessCsi } from "@longshore/csi";
import { accessComponents } from "@longshore/deployment";
import { type KubeClient, type KubeObject, resources } from "@longshore/kube";
import {
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  silentLogger,
  stopAll,
  VirtualClock,
} from "@longshore/runtime";
import { snapshotCrdsUrl } from "@longshore/storage";
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import { FakeCloud, fakeDriver } from "@longshore/testing/sidecars";
import { describe, expect, test } from "vitest";
import { resourceOf } from "../../../packages/deployment/src/deployed-kinds.ts";
import { type AccessCycle, type AccessWorld, accessNames } from "./access-world.ts";
import { accessCycles } from "./cycles.ts";
import { granteeOf, type Right, rightsOf, rightText, rolesWithout } from "./grants.ts";

const definitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
const socket = "/csi/csi.sock";

/** A request of the cycle was refused: it can stop. */
class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** Who holds a token of the account, as its pod does. */
async function holderOfToken(
  server: ApiServer,
  account: { readonly name: string; readonly namespace: string },
  signal: AbortSignal,
): Promise<UserInfo> {
  const admin = server.client();
  await admin.create(resources.serviceAccounts, { metadata: account }, { signal });
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} } as KubeObject;
  const answer = await admin.createSubresource(resources.serviceAccounts, account, "token", request, {
    signal,
  });
  const { token } = (answer as unknown as { readonly status: { readonly token: string } }).status;
  return server.authenticate({ authorization: `Bearer ${token}`, certificate: undefined });
}

/** Runs the cycle without the right. @returns what the component was refused */
async function runCycle(
  cycle: AccessCycle,
  emulatedVersion: string,
  taken?: Right,
): Promise<readonly string[]> {
  const clock = new VirtualClock();
  const runtime: RuntimeEnv = { clock, random: new SeededRandom(7), logger: silentLogger, meter: noMeter };
  const server = createApiServer(runtime, { store: memoryStore(), definitions, emulatedVersion });
  const signal = new AbortController().signal;
  const admin = server.client();
  await prepare(admin, cycle, taken, signal);
  const user = await holderOfToken(server, granteeOf(cycle).account, signal);
  const csi = inProcessCsi({ clock });
  const cloud = new FakeCloud();
  await csi.serve(socket, (cycle.services ?? fakeDriver)(cloud));
  const log: AccessLog = { asked: new Set(), refused: [] };
  const kube = watchedClient(server.client(user), log);
  const components: { stop(): Promise<void> }[] = [];
  const check = () => {
    if (log.refused.length > 0) throw new RefusedError(log.refused[0]);
  };
  const world: AccessWorld = {
    admin,
    cloud,
    signal,
    env: { ...runtime, kube, csi: csi.connect(socket) },
    start(component) {
      components.push(component);
      return component;
    },
    async eventually(what, condition) {
      for (let waited = 0; waited < 3600; waited++) {
        await clock.settle();
        check();
        const found = await condition();
        if (found !== undefined && found !== false) return found;
        await clock.advance(250);
      }
      throw new Error(`${cycle.name}: never: ${what}`);
    },
    async pause(ms) {
      await clock.advance(ms);
      check();
    },
  };
  try {
    await cycle.run(world);
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
  } finally {
    await clock.run(stopAll(components));
    await server.stop();
  }
  return log.refused;
}

async function prepare(admin: KubeClient, cycle: AccessCycle, taken: Right | undefined, signal: AbortSignal) {
  for (const name of [accessNames.namespace, accessNames.secretNamespace]) {
    await admin.create(resources.namespaces, { metadata: { name } }, { signal });
  }
  const secret = { namespace: accessNames.secretNamespace, name: accessNames.secret };
  await admin.create(resources.secrets, { metadata: secret, stringData: { key: "value" } }, { signal });
  for (const object of rolesWithout(cycle, taken)) await admin.create(resourceOf(object), object, { signal });
}

describe.each(accessCycles)("$component: $name", (cycle) => {
  const versions = ["1.36", "1.20"].filter((version) => Number(version.slice(2)) >= (cycle.sinceMinor ?? 0));
  test.each(versions)("under its own account nothing is refused, at %s", async (version) => {
    expect(await runCycle(cycle, version)).toEqual([]);
  });
});

const components = [...new Set(accessCycles.map(({ component }) => component))];

test("every component has a cycle", () => {
  expect(components.sort()).toEqual([...accessComponents].sort());
});

test.each(components)("%s needs each of its rights: without it something is refused", async (component) => {
  const needless = new Set<string>();
  const needed = new Set<string>();
  for (const cycle of accessCycles.filter((one) => one.component === component)) {
    for (const right of rightsOf(cycle)) {
      const text = rightText(right);
      if (needed.has(text)) continue;
      const refused = await runCycle(cycle, "1.36", right);
      if (refused.length > 0) needed.add(text);
      else needless.add(text);
    }
  }
  expect([...needless].filter((text) => !needed.has(text))).toEqual([]);
});
