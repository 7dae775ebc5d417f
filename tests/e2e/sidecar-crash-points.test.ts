/**
 * Controller sidecars in processes of their own, killed with `kill -9` at each point between their calls, before a call
 * is sent and after its answer, and followed by another process: the work ends as if nothing had happened, with no
 * volume leaked, lost or attached twice.
 */
import type { Component } from "@longshore/runtime";
import { startSnapshotController } from "@longshore/sidecars/snapshot-controller";
import { afterAll, beforeAll, expect, test } from "vitest";
import { realEnv } from "../../packages/apiserver/src/testing/serve.ts";
import { type CycleName, workCycles } from "../components/sidecars/work-cycles.ts";
import { type CrashCluster, startCrashCluster } from "./support/crash-cluster.ts";
import { killAtEveryPoint } from "./support/kill-at-points.ts";
import { MortalProcesses } from "./support/mortal-process.ts";

let cluster: CrashCluster;
let processes: MortalProcesses;
let companion: Component;

beforeAll(async () => {
  [cluster, processes] = await Promise.all([startCrashCluster(), MortalProcesses.prepare()]);
  // Runs together with the snapshotter; the other sidecars do not need it.
  companion = startSnapshotController({ ...realEnv, kube: cluster.kube });
});
afterAll(async () => {
  await processes?.stop();
  await companion?.stop();
  await cluster?.stop();
});

/** Time for one sidecar. */
const budgetMs = 60_000;

test.each<[CycleName, readonly string[]]>([
  ["attacher", ["controllerPublishVolume", "controllerUnpublishVolume"]],
  ["provisioner", ["createVolume", "deleteVolume"]],
  ["resizer", ["controllerExpandVolume"]],
  ["snapshotter", ["createSnapshot", "deleteSnapshot"]],
])(
  "the %s survives kill -9 at every point between its calls",
  async (sidecar, rpcs) => {
    const report = await killAtEveryPoint(processes, {
      name: sidecar,
      surroundings: { sidecar, ...cluster.surroundings },
      cycle: (id) => workCycles[sidecar](cluster, `${sidecar}-${id}`),
      budgetMs,
    });
    expect(report.failures).toEqual([]);
    expect(report.calls).toEqual(expect.arrayContaining([...rpcs]));
  },
  300_000,
);
