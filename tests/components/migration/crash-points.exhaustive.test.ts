/**
 * The controllers of OpenShift and Gardener are killed at every point between their API requests, reads and watches among them: the
 * work ends as if nothing had happened (docs/behaviour/migration-controllers.md A4, B6).
 */

import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import { type HttpKubeClient, interceptWrites } from "@longshore/kube";
import { gardenerCrdsUrl, newClientForShoot } from "@longshore/migration/gardener";
import { openshiftCrdsUrl } from "@longshore/migration/openshift";
import type { Component } from "@longshore/runtime";
import { Life, type Side, virtualEnv } from "@longshore/testing/kube";
import { describe, expect, it } from "vitest";
import {
  type MigrationCycleName,
  type MigrationWorld,
  migrationCycles,
  preparePlatform,
} from "./crash-cycles.ts";
import { type MigrationSeams, startMigration } from "./start-migration.ts";

const names = Object.keys(migrationCycles) as MigrationCycleName[];
const definitions = await readDefinitions(
  [openshiftCrdsUrl, gardenerCrdsUrl].map((url) => fileURLToPath(url)),
);
/** How long a controller does what is left after the end, as its last event, in virtual milliseconds. */
const lateMs = 2_000;

interface Outcome {
  readonly rests?: readonly unknown[];
  readonly error?: unknown;
  readonly tookMs: number;
}

/** One run of the cycle; a controller that dies is followed by one that lives on. */
async function live(name: MigrationCycleName, life: Life, awayMs: number): Promise<Outcome> {
  const env = virtualEnv();
  const { clock } = env;
  const kube = createApiServer(env, { controllers: false, store: memoryStore(), definitions }).client();
  const { signal } = new AbortController();
  const world: MigrationWorld = {
    kube,
    signal,
    shootKubeconfig: JSON.stringify({
      clusters: [{ name: "c", cluster: { server: "https://shoot.example.com" } }],
      users: [{ name: "u", user: { token: "t" } }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    }),
    async eventually(what, condition) {
      const untilMs = clock.monotonicMs() + 60 * 60_000;
      for (;;) {
        await clock.settle();
        const found = await condition();
        if (found !== undefined && found !== false) return found;
        if (clock.monotonicMs() >= untilMs) throw new Error(`not within an hour: ${what}`);
        await clock.advance(250);
      }
    },
  };
  const seams: MigrationSeams = {
    env,
    kube,
    // The Secret is read, and a client made of it, as always; requests go to the seed, which plays the shoot.
    shootClients: (seed) => async (cluster, passSignal) => {
      await (await newClientForShoot({ ...env, kube: seed })(cluster, passSignal)).close();
      const shoot = interceptWrites(kube, (_, given, send) => send(given));
      return { ...shoot, close: async () => {} } as HttpKubeClient;
    },
  };
  await preparePlatform(world);
  const startedMs = clock.monotonicMs();
  let current: Component | undefined = startMigration(name, seams, life);
  let heir: Promise<void> = Promise.resolve();
  void life.death.then(() => {
    current = undefined;
    heir = clock.sleep(awayMs, signal).then(() => {
      current = startMigration(name, seams);
    });
  });
  try {
    const rests = await migrationCycles[name](world, "1");
    const tookMs = clock.monotonicMs() - startedMs;
    await clock.advance(lateMs);
    return { rests, tookMs };
  } catch (error) {
    return { error, tookMs: clock.monotonicMs() - startedMs };
  } finally {
    await clock.run(heir);
    await clock.run((current as Component | undefined)?.stop() ?? Promise.resolve());
  }
}

describe.each([
  ["at once", 0],
  ["after five seconds", 5_000],
])("a controller that is killed, when another takes its place %s, reaches the same end:", (_, awayMs) => {
  it.each(names)("%s", async (name) => {
    const undisturbed = new Life();
    const { rests, error } = await live(name, undisturbed, 0);
    if (error !== undefined) throw error;
    const failures: string[] = [];
    let slowest = { point: "none", tookMs: 0 };
    for (let at = 1; at <= undisturbed.calls; at++) {
      for (const side of ["before", "after"] as const satisfies readonly Side[]) {
        const life = new Life(at, side);
        const outcome = await live(name, life, awayMs);
        const point = `${side} ${undisturbed.log[at - 1]} (${at})`;
        if (outcome.error !== undefined) failures.push(`${point}: ${outcome.error}`);
        else if (!life.dead) failures.push(`${point}: it was not reached`);
        else if (!isDeepStrictEqual(outcome.rests, rests)) {
          const at = outcome.rests?.findIndex((rest, index) => !isDeepStrictEqual(rest, rests?.[index])) ?? 0;
          failures.push(`${point}: another end: ${JSON.stringify(outcome.rests?.[at])}`);
        }
        if (outcome.tookMs > slowest.tookMs) slowest = { point, tookMs: outcome.tookMs };
      }
    }
    const points = 2 * undisturbed.calls;
    console.log(`${name}: ${points - failures.length}/${points} crash points, another ${_}`);
    expect(failures).toEqual([]);
    expect(undisturbed.log).toEqual(expect.arrayContaining([...made[name]]));
    // It goes on when it starts, and waits for no resync.
    expect(slowest.tookMs, slowest.point).toBeLessThan(awayMs + 60_000);
  });
});

/** Without these the cycle has not done its work. */
const made: Readonly<Record<MigrationCycleName, readonly string[]>> = {
  "feature-gate-operator": [
    "create ClusterOperator",
    "updateStatus ClusterOperator",
    "update KubeAPIServer",
    "create KubeletConfig",
    "delete KubeletConfig",
    "create Event",
  ],
  "feature-gate-operator with two sets": ["list CSINode", "create KubeletConfig", "delete KubeletConfig"],
  "migration-controller": [
    "get ControlPlane",
    "get Secret",
    "list Node",
    "delete StorageClass",
    "update Cluster",
    "patch Deployment",
  ],
};
