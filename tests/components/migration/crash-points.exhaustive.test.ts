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
import {
  type CrashFlow,
  type CrashPoint,
  crashAtEveryPoint,
  crashInPairs,
  Succession,
  virtualEnv,
} from "@longshore/testing/kube";
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
  /** What there was at each rest. */
  readonly rests: readonly unknown[];
  readonly tookMs: number;
  readonly calls: readonly (readonly string[])[];
}

/** One run of the cycle, with one controller after the other. @param awayMs from a death to the next one, in virtual milliseconds */
async function live(
  name: MigrationCycleName,
  points: readonly CrashPoint[],
  awayMs: number,
): Promise<Outcome> {
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
  const controllers = new Succession(
    points,
    (life) => startMigration(name, seams, life),
    () => clock.sleep(awayMs, signal),
  );
  const outcome = { rests: [] as readonly unknown[], tookMs: 0 };
  try {
    outcome.rests = await migrationCycles[name](world, "1");
    outcome.tookMs = clock.monotonicMs() - startedMs;
    await clock.advance(lateMs);
  } finally {
    await clock.run(controllers.stop());
  }
  return { ...outcome, calls: controllers.calls };
}

/** Ends as it does undisturbed, and goes on when it starts: it waits for no resync. */
function flowOf(name: MigrationCycleName, awayMs: number): CrashFlow {
  let undisturbed: readonly unknown[] | undefined;
  return async (points) => {
    const { rests, tookMs, calls } = await live(name, points, awayMs);
    undisturbed ??= rests;
    const at = rests.findIndex((rest, index) => !isDeepStrictEqual(rest, undisturbed?.[index]));
    if (at >= 0) throw new Error(`another end: ${JSON.stringify(rests[at])}`);
    if (tookMs >= points.length * awayMs + 60_000) throw new Error(`it took ${tookMs} ms`);
    return calls;
  };
}

describe.each([
  ["at once", 0],
  ["after five seconds", 5_000],
])("a controller that is killed, when another takes its place %s, reaches the same end:", (when, awayMs) => {
  it.each(names)("%s", async (name) => {
    const choice = { name: `${name}, another ${when}` };
    const { summary, failures, calls } = await crashAtEveryPoint(flowOf(name, awayMs), choice);
    console.log(summary);
    expect(failures).toEqual([]);
    expect(calls).toEqual(expect.arrayContaining([...made[name]]));
  });
});

it.each(names)(
  "%s is killed, and the one after it too, and reaches the same end",
  async (name) => {
    const { summary, failures } = await crashInPairs(flowOf(name, 0), 20, { name });
    console.log(summary);
    expect(failures).toEqual([]);
  },
  3_600_000,
);

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
