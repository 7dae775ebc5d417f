/**
 * Controller sidecars in processes of their own, killed with `kill -9` at each point between their calls, before a call
 * is sent and after its answer, and followed by another process: the work ends as if nothing had happened, with no
 * volume leaked, lost or attached twice.
 */
import type { Component } from "@longshore/runtime";
import { startSnapshotController } from "@longshore/sidecars/snapshot-controller";
import type { NthCall, Side } from "@longshore/testing/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { realEnv } from "../../packages/apiserver/src/testing/serve.ts";
import { type CycleName, workCycles } from "../components/sidecars/work-cycles.ts";
import { type CrashCluster, startCrashCluster } from "./support/crash-cluster.ts";
import { type MortalSidecar, MortalSidecars } from "./support/mortal-sidecar.ts";

let cluster: CrashCluster;
let processes: MortalSidecars;
let companion: Component;

beforeAll(async () => {
  [cluster, processes] = await Promise.all([startCrashCluster(), MortalSidecars.prepare()]);
  // Runs together with the snapshotter; the other sidecars do not need it.
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

const count = (calls: readonly string[], what: string) => calls.filter((call) => call === what).length;

/**
 * Before and after each call that all of these runs made, known by its kind, since the order may vary from run to run.
 * The first of each kind come first, so that every kind is among those that there is time for.
 */
function pointsOf(runs: readonly (readonly string[])[]): readonly Point[] {
  const points: Point[] = [];
  for (const what of new Set(runs.flat())) {
    const everyTime = Math.min(...runs.map((calls) => count(calls, what)));
    for (let nth = 1; nth <= everyTime; nth++) {
      const call = { what, nth };
      points.push({ call, side: "before" }, { call, side: "after" });
    }
  }
  return points.sort((a, b) => a.call.nth - b.call.nth);
}

/** Time for one sidecar; points beyond the first of each kind are left out when it is over. */
const budgetMs = 60_000;
/** How long a point that comes after the work is done, such as the last event, is waited for. */
const lateMs = 2000;

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
    const undisturbed: (readonly string[])[] = [];
    for (const name of ["undisturbed-1", "undisturbed-2"]) {
      await current.live(surroundings);
      await cycle(cluster, `${sidecar}-${name}`);
      undisturbed.push(await current.end());
    }
    expect(undisturbed[0]).toEqual(expect.arrayContaining([...rpcs]));

    let runs = 0;
    /** Runs the cycle with one death in it. @returns whether the point was reached */
    const killAt = async ({ call, side }: Point): Promise<boolean> => {
      const victim = current;
      const heir = processes.take().then(async (next) => {
        await victim.killed;
        await next.live(surroundings);
        return next;
      });
      await victim.live(surroundings, call, side);
      try {
        await cycle(cluster, `${sidecar}-${++runs}`);
        const late = realEnv.clock.sleep(lateMs, cluster.signal);
        return (await Promise.race([victim.killed, late])) === "SIGKILL";
      } finally {
        victim.kill();
        current = await heir;
        await current.end();
      }
    };

    const points = pointsOf(undisturbed);
    const startedMs = realEnv.clock.monotonicMs();
    const isOver = () => realEnv.clock.monotonicMs() - startedMs > budgetMs;
    const tried = points.filter(({ call }) => call.nth === 1).length;
    const failures: string[] = [];
    let done = 0;
    for (const point of points) {
      if (done >= tried && isOver()) break;
      done++;
      try {
        // Where the calls of a run vary, a point may be missed once.
        if (!(await killAt(point)) && !(await killAt(point))) throw new Error("the point was not reached");
      } catch (error) {
        const { call, side } = point;
        failures.push(
          `${side} ${call.what} (${call.nth}): ${error instanceof Error ? error.message : error}`,
        );
      }
    }
    const all = done === points.length ? "" : ` of ${points.length}, for want of time`;
    const report = [
      `${sidecar}: ${done - failures.length}/${done} crash points${all}, by kill -9`,
      ...failures,
    ];
    console.log(report.join("\n  "));
    expect(failures).toEqual([]);
  },
  300_000,
);
