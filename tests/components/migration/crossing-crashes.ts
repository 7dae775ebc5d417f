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
import {
  type CrashFlow,
  type CrashReport,
  crashAtEveryPoint,
  crashInPairs,
  Life,
  mortalSeam,
} from "@longshore/testing/kube";
import { type CrossingWorld, crossingWorld } from "./crossing-world.ts";

const subject = crossingSubject("aws-ebs");
const signal = new AbortController().signal;
const journalFile = "/crossing.json";

/** One run, in a process with this life, on the machine named. */
function run(
  world: CrossingWorld,
  direction: CrossingDirection,
  life: Life,
  machine: string,
): Promise<unknown> {
  const kindOf = (method: string, [resource]: readonly unknown[]) =>
    `${method} ${(resource as { kind?: string }).kind ?? ""}`;
  const kube: KubeClient = mortalSeam(world.kube, life, kindOf);
  const platform: Platform = mortalSeam(world.platform, life);
  const host: Host = mortalSeam<Host>(world.host(machine), life);
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
export function crashCrossing(
  direction: CrossingDirection,
  isChosen: (call: number) => boolean = () => true,
): Promise<CrashReport> {
  return crashAtEveryPoint(flowOf(direction), { name: direction, isChosen });
}

/** What changes the cluster or its nodes, but for the journal, which has steps around each change. */
const isChange = (what: string): boolean =>
  /^(create|update|patch|delete|set)/.test(what) && !/ (ConfigMap|Lease)$/.test(what);

/** Kills a run, and the run that goes on after it: after all pairs of changes, and at `most` other pairs. A third one ends the crossing. */
export function crashCrossingTwice(direction: CrossingDirection, most: number): Promise<CrashReport> {
  return crashInPairs(flowOf(direction), most, { name: direction, isChange });
}

/** One run goes on after the other. */
const flowOf =
  (direction: CrossingDirection): CrashFlow =>
  async (points) => {
    const world = await worldBefore(direction);
    // Another machine goes on half of the time: it has no journal of its own.
    const next = (points[0]?.at ?? 0) % 2 === 0 ? "m1" : "m2";
    const calls: string[][] = [];
    try {
      for (const { at, side } of [...points, { at: undefined, side: undefined }]) {
        const life = new Life(at, side);
        const going = run(world, direction, life, calls.length === 0 ? "m1" : next);
        calls.push(life.log);
        going.catch(() => {});
        await world.clock.run(Promise.race([going, life.death]), { limitMs: 3_600_000 });
        if (!life.dead) break;
        await world.clock.advance(3000);
      }
      await world.clock.advance(5000);
      const problems = [...world.broken, ...(await leftovers(world, direction))];
      if (problems.length > 0) throw new Error(problems.join("; "));
      return calls;
    } finally {
      await world.stop();
    }
  };

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
