/**
 * Controller sidecars in processes of their own, killed with `kill -9` at each point between their calls, before a call
 * is sent and after its answer, and followed by another process: the work ends as if nothing had happened, with no
 * volume leaked, lost or attached twice.
 */
import type { Component } from "@longshore/runtime";
import { startSnapshotController } from "@longshore/sidecars";
import { afterAll, beforeAll, expect, test } from "vitest";
import { realEnv } from "../../packages/apiserver/src/testing/serve.ts";
import type { NthCall, Side } from "../../packages/sidecars/src/testing/crashing.ts";
import { type CycleName, workCycles } from "../../packages/sidecars/src/testing/work-cycles.ts";
import { type CrashCluster, startCrashCluster } from "./support/crash-cluster.ts";
import { type MortalSidecar, MortalSidecars } from "./support/mortal-sidecar.ts";

let cluster: CrashCluster;
let processes: MortalSidecars;
let companion: Component;

beforeAll(async () => {
  [cluster, processes] = await Promise.all([startCrashCluster(), MortalSidecars.prepare()]);
  // Beside the snapshotter; the others have nothing to do with it.
  companion = startSnapshotController({ ...realEnv, kube: cluster.kube });
});
afterAll(async () => {
  await processes?.stop();
  await companion?.stop();
  await cluster?.stop();
});

interface Point {
  readonly call: NthCall;
  readonly side: Side;
}

/** Before and after each call; calls are known by their kind, since their order may vary from run to run. */
function pointsOf(calls: readonly string[]): readonly Point[] {
  const seen = new Map<string, number>();
  return calls.flatMap((what) => {
    const nth = (seen.get(what) ?? 0) + 1;
    seen.set(what, nth);
    const call = { what, nth };
    return [
      { call, side: "before" as const },
      { call, side: "after" as const },
    ];
  });
}

test.each<[CycleName, readonly string[]]>([
  ["attacher", ["controllerPublishVolume", "controllerUnpublishVolume"]],
  ["provisioner", ["createVolume", "deleteVolume"]],
  ["resizer", ["controllerExpandVolume"]],
  ["snapshotter", ["createSnapshot", "deleteSnapshot"]],
])(
  "the %s survives kill -9 at every point between its calls",
  async (sidecar, rpcs) => {
    const surroundings = { sidecar, ...cluster.surroundings };
    const cycle = workCycles[sidecar];
    let current: MortalSidecar = await processes.take();
    await current.live(surroundings);
    await cycle(cluster, `${sidecar}-calm`);
    const calls = await current.end();
    expect(calls).toEqual(expect.arrayContaining([...rpcs]));

    const points = pointsOf(calls);
    const badEnds: string[] = [];
    for (const [at, { call, side }] of points.entries()) {
      const victim = current;
      const heir = processes.take().then(async (next) => {
        await victim.killed;
        await next.live(surroundings);
        return next;
      });
      const point = `${side} ${call.what} (${call.nth})`;
      try {
        await victim.live(surroundings, call, side);
        await cycle(cluster, `${sidecar}-${at}`);
        // One that is reached only after the work is done, such as the last event, may come a little later.
        const by = await Promise.race([victim.killed, cluster.eventually(point, async () => false)]);
        expect(by).toBe("SIGKILL");
      } catch (error) {
        badEnds.push(`${point}: ${error instanceof Error ? error.message : error}`);
        victim.kill();
      }
      current = await heir;
      await current.end();
    }
    console.log(`${sidecar}: ${points.length - badEnds.length}/${points.length} crash points, by kill -9`);
    expect(badEnds).toEqual([]);
  },
  300_000,
);
