/**
 * Kills a component in a process of its own with `kill -9` at each point between its calls, before a call is sent and after its answer,
 * while it does its work; another process follows, and the work must end as if nothing had happened.
 */

import type { NthCall, Side } from "@longshore/testing/kube";
import { realEnv } from "../../../packages/apiserver/src/testing/serve.ts";
import type { MortalProcess, MortalProcesses } from "./mortal-process.ts";
import type { MigrationSurroundings, Surroundings } from "./mortal-program.ts";

/** What is killed, and while it does what. */
export interface KillScenario {
  readonly name: string;
  readonly surroundings: Surroundings | MigrationSurroundings;
  /** One run of the work; it throws at a wrong end. `id` makes its names unique. */
  readonly cycle: (id: string) => Promise<unknown>;
  /** Time for all points, in milliseconds; points beyond the first of each kind are left out when it is over. */
  readonly budgetMs: number;
}

/** How it went. */
export interface KillReport {
  /** The calls of an undisturbed run. */
  readonly calls: readonly string[];
  readonly failures: readonly string[];
}

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

/** How long a point that comes after the work is done, such as the last event, is waited for. */
const lateMs = 2000;

/** How the process ended; undefined: it runs on after so many milliseconds. */
async function endWithin(process: MortalProcess, ms: number): Promise<string | undefined> {
  const ended = new AbortController();
  const late = realEnv.clock.sleep(ms, ended.signal).then(
    () => undefined,
    () => undefined,
  );
  try {
    return (await Promise.race([process.killed, late])) ?? undefined;
  } finally {
    // Otherwise every point would leave a timer.
    ended.abort();
  }
}

/** Goes through the points, and prints how many of them ended well. */
export async function killAtEveryPoint(
  processes: MortalProcesses,
  { name, surroundings, cycle, budgetMs }: KillScenario,
): Promise<KillReport> {
  let current: MortalProcess = await processes.take();
  const undisturbed: (readonly string[])[] = [];
  for (const id of ["undisturbed-1", "undisturbed-2"]) {
    await current.live(surroundings);
    await cycle(id).catch((error: unknown) => {
      current.kill();
      throw error;
    });
    undisturbed.push(await current.end());
  }

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
      await cycle(`${++runs}`);
      return (await endWithin(victim, lateMs)) === "SIGKILL";
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
      failures.push(`${side} ${call.what} (${call.nth}): ${error instanceof Error ? error.message : error}`);
    }
  }
  const all = done === points.length ? "" : ` of ${points.length}, for want of time`;
  const report = [`${name}: ${done - failures.length}/${done} crash points${all}, by kill -9`, ...failures];
  console.log(report.join("\n  "));
  return { calls: undisturbed[0] ?? [], failures };
}
