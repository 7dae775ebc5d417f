/** Kills a crossing at each of its calls, one after the other, each time in a world of its own, and lets another process go on. */
import type { KubeClient, KubeObject } from "@longshore/kube";
import { resources } from "@longshore/kube";
import {
  type CrossingDirection,
  crossingSubject,
  type Platform,
  runCrossing,
  underCrossingLease,
} from "@longshore/migration";
import type { Host } from "@longshore/runtime";
import { Life, type Side, sampleOf } from "@longshore/testing/kube";
import { type CrossingWorld, crossingWorld } from "./crossing-world.ts";

const subject = crossingSubject("aws-ebs");
const signal = new AbortController().signal;
const journalFile = "/crossing.json";

/** How all points went. */
export interface CrashReport {
  readonly points: number;
  /** Each with its point, as `after update Node (23)`. */
  readonly failures: readonly string[];
}

/** A seam whose calls are those of a life. */
function mortal<T extends object>(seam: T, life: Life, name: (method: string, args: unknown[]) => string): T {
  return new Proxy(seam, {
    get(target, key) {
      const member = target[key as keyof T];
      if (typeof member !== "function") return member;
      return (...args: unknown[]) =>
        life.call(name(String(key), args), () => member.apply(target, args) as Promise<unknown>);
    },
  });
}

/** One run, in a process with this life, on the machine named. */
function run(
  world: CrossingWorld,
  direction: CrossingDirection,
  life: Life,
  machine: string,
): Promise<unknown> {
  const kindOf = (method: string, [resource]: unknown[]) =>
    `${method} ${(resource as { kind?: string }).kind ?? ""}`;
  const kube: KubeClient = mortal(world.kube, life, kindOf);
  const platform: Platform = mortal(world.platform, life, (method) => method);
  const host: Host = mortal<Host>(world.host(machine), life, (method) => method);
  const env = { ...world.env, kube, platform, host };
  return underCrossingLease(env, { identity: `${machine}-${life.calls}` }, signal, (fenced, within) =>
    runCrossing(
      { ...env, kube: fenced },
      { subject, direction, journalFile, clusterJournal: true, maxUnavailable: 2 },
      within,
    ),
  );
}

async function worldBefore(direction: CrossingDirection): Promise<CrossingWorld> {
  const world = await crossingWorld({ subjects: [subject], nodes: 3, writers: 2 });
  if (direction === "rollback") await world.clock.run(run(world, "migrate", new Life(), "earlier"));
  return world;
}

/** Kills it before and after the calls that `isChosen` chooses by their number. */
export async function crashCrossing(
  direction: CrossingDirection,
  isChosen: (call: number) => boolean = () => true,
): Promise<CrashReport> {
  const whole = new Life();
  const undisturbed = await worldBefore(direction);
  await undisturbed.clock.run(run(undisturbed, direction, whole, "m1"));
  await undisturbed.stop();
  const failures: string[] = [];
  let points = 0;
  for (let at = 1; at <= whole.calls; at++) {
    if (!isChosen(at)) continue;
    for (const side of ["before", "after"] as const) {
      points++;
      const point = `${side} ${whole.log[at - 1]} (${at})`;
      // Another machine goes on half of the time: it has no journal of its own.
      const next = at % 2 === 0 ? "m1" : "m2";
      const problems = await crashed(direction, [new Life(at, side)], next).catch((error) => [String(error)]);
      if (problems.length > 0) failures.push(`${point}: ${problems.join("; ")}`);
    }
  }
  return { points, failures };
}

/** How pairs of points went. */
export interface CrashPairReport {
  /** All pairs: of each point of a whole run with each of the same run, of which the second may lie past its end. */
  readonly pairs: number;
  readonly played: number;
  /** Pairs of which the second run came to its end before its point. */
  readonly ended: number;
  readonly failures: readonly string[];
}

/** Kills a run, and the run that goes on after it; a third one ends the crossing. Plays `most` of the pairs, drawn by a seed. */
export async function crashCrossingTwice(
  direction: CrossingDirection,
  most: number,
): Promise<CrashPairReport> {
  const whole = new Life();
  const undisturbed = await worldBefore(direction);
  await undisturbed.clock.run(run(undisturbed, direction, whole, "m1"));
  await undisturbed.stop();
  const points = Array.from({ length: whole.calls }, (_, at) => at + 1).flatMap((at) =>
    (["before", "after"] as const).map((side): readonly [number, Side] => [at, side]),
  );
  const all = points.flatMap((first) => points.map((second) => [first, second] as const));
  const chosen = sampleOf(all, most, 1);
  const failures: string[] = [];
  let ended = 0;
  for (const pair of chosen) {
    const lives = pair.map(([at, side]) => new Life(at, side));
    const problems = await crashed(direction, lives, "m2").catch((error) => [String(error)]);
    const isShort = problems[0] === notReached && lives[0]?.dead === true;
    if (isShort) ended++;
    else if (problems.length > 0) failures.push(`${pair.join(" then ")}: ${problems.join("; ")}`);
  }
  return { pairs: all.length, played: chosen.length, ended, failures };
}

const notReached = "the point was not reached";

async function crashed(
  direction: CrossingDirection,
  lives: readonly Life[],
  next: string,
): Promise<readonly string[]> {
  const world = await worldBefore(direction);
  try {
    for (const [number, life] of lives.entries()) {
      const killed = run(world, direction, life, number === 0 ? "m1" : next);
      killed.catch(() => {});
      await world.clock.run(Promise.race([killed, life.death]), { limitMs: 3_600_000 });
      if (!life.dead) return [notReached];
      await world.clock.advance(3000);
    }
    await world.clock.run(run(world, direction, new Life(), next), { limitMs: 3_600_000 });
    await world.clock.advance(5000);
    return [...world.broken, ...(await leftovers(world, direction))];
  } finally {
    await world.stop();
  }
}

/** What is not as it is to be after the crossing. */
async function leftovers(world: CrossingWorld, direction: CrossingDirection): Promise<string[]> {
  const path = direction === "migrate" ? "csi" : "in-tree";
  const disks = [...world.attached()];
  const wrong = disks
    .filter(([, disk]) => disk.path !== path)
    .map(([name, disk]) => `${name} is on ${disk.path}`);
  if (disks.length !== 2) wrong.push(`${disks.length} disks are attached`);
  const nodes = await world.kube.list(resources.nodes, { signal });
  for (const { metadata, spec } of nodes.items) {
    if (spec?.unschedulable === true) wrong.push(`${metadata.name} stays cordoned`);
    const marks = Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith("longshore.dev/"));
    if (marks.length > 0) wrong.push(`${metadata.name} keeps ${marks.join()}`);
  }
  const ref = { namespace: "kube-system", name: "longshore-crossing-aws-ebs" };
  const map = (await world.kube.get(resources.configMaps, ref, { signal })) as KubeObject & {
    readonly data?: Readonly<Record<string, string>>;
  };
  const journal = JSON.parse(map.data?.["journal.json"] ?? "{}");
  if (journal.finishedAt === undefined || journal.direction !== direction)
    wrong.push("the journal is not finished");
  return wrong;
}
