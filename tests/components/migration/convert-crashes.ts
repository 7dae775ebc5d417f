/** Kills a conversion at each of its calls, one after the other, each time in a world of its own, and lets another process go on. */

import { resources } from "@longshore/kube";
import type { Host } from "@longshore/runtime";
import { Life, mortalClient } from "@longshore/testing/kube";
import { ConversionWorld, type Operator } from "../../../packages/simulation/src/conversion-world.ts";

/** What is killed, and what is done then. */
export interface CrashStory {
  readonly killed: "convert" | "undo";
  readonly next: "convert" | "undo";
  /** Volumes of one StatefulSet; default 1. */
  readonly replicas?: number;
  /** The disk is an inline volume of the set's template. */
  readonly inline?: boolean;
}

/** How all points went. */
export interface CrashReport {
  readonly points: number;
  /** Each with its point, as `after delete PersistentVolumeClaim (23)`. */
  readonly failures: readonly string[];
}

const options = { scaleDown: true };
const limitMs = 3_600_000;

/**
 * Kills it after the calls that `isChosen` chooses by their number. Before a call nothing is left behind but what is left after the
 * one before it: a process has no effect between two calls.
 */
export async function crashConversion(
  story: CrashStory,
  isChosen: (call: number) => boolean = () => true,
): Promise<CrashReport> {
  const whole = new Life();
  await inWorld(story, async (world) => {
    const result = await world[story.killed](mortal(world, whole), options);
    if (result.failed.length > 0) throw new Error(`no call killed it: ${result.failed[0]?.error}`);
  });
  const failures: string[] = [];
  let points = 0;
  for (let at = 1; at <= whole.calls; at++) {
    if (!isChosen(at)) continue;
    points++;
    const problems = await crashed(story, new Life(at, "after"), at).catch((error) => [String(error)]);
    if (problems.length > 0) failures.push(`after ${whole.log[at - 1]} (${at}): ${problems.join("; ")}`);
  }
  return { points, failures };
}

/** A world whose writer runs, on an in-tree volume or, to be undone, on a converted one. */
async function inWorld(
  { killed, replicas = 1, inline = false }: CrashStory,
  script: (world: ConversionWorld, names: ReadonlySet<string>) => Promise<void>,
): Promise<void> {
  await ConversionWorld.play({ plugins: ["aws-ebs"], replicas, inline }, async (world) => {
    const names = new Set(
      world.cluster.objects(resources.persistentVolumes).map(({ metadata }) => metadata.name),
    );
    if (killed === "undo") await world.convert(world.operator("m1"), options);
    await script(world, names);
  });
}

async function crashed(story: CrashStory, life: Life, at: number): Promise<readonly string[]> {
  const problems: string[] = [];
  await inWorld(story, async (world, names) => {
    const killed = world[story.killed](mortal(world, life), options);
    killed.catch(() => {});
    await Promise.race([killed, life.death]);
    if (!life.dead) {
      problems.push("the point was not reached");
      return;
    }
    // What others make of the state that is left behind.
    await world.clock.sleep(3000, new AbortController().signal);
    // Another machine goes on half of the time: it has no files of the first one.
    const other = world.operator(at % 2 === 0 ? "m1" : "m2");
    const result = await world[story.next](other, options);
    problems.push(...result.failed.map(({ error }) => String(error)));
    await Promise.race([world.writersRun(), world.clock.sleep(limitMs, new AbortController().signal)]);
    problems.push(...world.leftovers(story.next === "convert" ? "csi" : "in-tree", names));
    problems.push(...(await world.lostWrites()), ...world.violations);
    const journals = [...(await world.journals(other)).values(), ...(await world.templates(other)).values()];
    const open = journals.filter(({ finishedAt }) => finishedAt === undefined);
    if (open.length > 0) problems.push("a journal is not finished");
  });
  return problems;
}

/** The operator whose process has this life: each request and each access to a file is one of its calls. */
function mortal(world: ConversionWorld, life: Life): Operator {
  const { kube, host } = world.operator("m1");
  const mortalHost = new Proxy<Host>(host, {
    get(target, key) {
      const member = target[key as keyof Host] as unknown;
      if (typeof member !== "function") return member;
      return (...args: unknown[]) =>
        life.call(String(key), () => Reflect.apply(member, target, args) as Promise<unknown>);
    },
  });
  return { kube: mortalClient(kube, life), host: mortalHost };
}
