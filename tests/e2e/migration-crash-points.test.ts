/**
 * The controllers of OpenShift and Gardener in processes of their own, on an API server over HTTPS, killed with `kill -9` at each
 * point between their requests, before one is sent and after its answer, and followed by another process: gates, conditions,
 * annotations and classes end as if nothing had happened (docs/behaviour/migration-controllers.md A4, B6).
 */

import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type MigrationCycleName, migrationCycles } from "../components/migration/crash-cycles.ts";
import { killAtEveryPoint } from "./support/kill-at-points.ts";
import { type MigrationServer, startMigrationServer } from "./support/migration-server.ts";
import { MortalProcesses } from "./support/mortal-process.ts";

/** Time for one controller. */
const budgetMs = 240_000;

let world: MigrationServer;
let processes: MortalProcesses;

beforeAll(async () => {
  [world, processes] = await Promise.all([startMigrationServer(), MortalProcesses.prepare()]);
});
afterAll(async () => {
  await processes?.stop();
  await world?.stop();
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
      surroundings: { migration, ...world.surroundings },
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
