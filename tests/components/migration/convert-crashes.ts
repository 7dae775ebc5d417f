/** Kills a conversion at each of its calls, one after the other, each time in a world of its own, and lets another process go on. */

import { resources, type StatefulSet, type StorageClass, type Stored } from "@longshore/kube";
import type { PluginName } from "@longshore/local";
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
  /** The StatefulSet's template and its class are converted: by the class beside the old one, or in its place. */
  readonly objects?: "beside" | "in place";
  /** Each with a StatefulSet of its own; default `aws-ebs`. */
  readonly plugins?: readonly PluginName[];
  /** Workloads that are carried at the same time; default 1. */
  readonly parallel?: number;
  /** With objects: the volumes are converted before. */
  readonly volumes?: true;
}

/** How all points went. */
export interface CrashReport {
  readonly points: number;
  /** Each with its point, as `after delete PersistentVolumeClaim (23)`. */
  readonly failures: readonly string[];
}

const optionsOf = ({ objects, volumes, parallel = 1 }: CrashStory) => {
  if (objects === undefined) return { scaleDown: true, parallel };
  const classSuffix = objects === "beside" ? { classSuffix: "-csi" } : {};
  const isWhole = volumes === true;
  const what = { noVolumes: !isWhole, classes: true, templates: true };
  return { ...what, scaleDown: isWhole, parallel, ...classSuffix };
};
/** What changes an object of storage or a workload. */
const changing = /^(create|patch|delete) /;

/** The calls that change the cluster, but for the journal: those after which others see another state. */
export const isChange = (_call: number, what: string): boolean =>
  changing.test(what) && !what.endsWith(" ConfigMap");

const limitMs = 3_600_000;

/**
 * Kills it after the calls that `isChosen` chooses by their number and what they are. Before a call nothing is left behind but what is left after the
 * one before it: a process has no effect between two calls.
 */
export async function crashConversion(
  story: CrashStory,
  isChosen: (call: number, what: string) => boolean = () => true,
): Promise<CrashReport> {
  const whole = new Life();
  await inWorld(story, async (world) => {
    const result = await world[story.killed](mortal(world, whole), optionsOf(story));
    if (result.failed.length > 0) throw new Error(`no call killed it: ${result.failed[0]?.error}`);
  });
  const failures: string[] = [];
  let points = 0;
  for (let at = 1; at <= whole.calls; at++) {
    if (!isChosen(at, whole.log[at - 1] ?? "")) continue;
    points++;
    const problems = await crashed(story, new Life(at, "after"), at).catch((error) => [String(error)]);
    if (problems.length > 0) failures.push(`after ${whole.log[at - 1]} (${at}): ${problems.join("; ")}`);
  }
  return { points, failures };
}

/** A world whose writer runs, on an in-tree volume or, to be undone, on a converted one. */
async function inWorld(
  story: CrashStory,
  script: (world: ConversionWorld, names: ReadonlySet<string>) => Promise<void>,
): Promise<void> {
  const { killed, replicas = 1, inline = false, plugins = ["aws-ebs"] } = story;
  await ConversionWorld.play({ plugins, replicas, inline }, async (world) => {
    const names = new Set(
      world.cluster.objects(resources.persistentVolumes).map(({ metadata }) => metadata.name),
    );
    if (killed === "undo") await world.convert(world.operator("m1"), optionsOf(story));
    await script(world, names);
  });
}

async function crashed(story: CrashStory, life: Life, at: number): Promise<readonly string[]> {
  const problems: string[] = [];
  await inWorld(story, async (world, names) => {
    const pods = podsOf(world);
    const killed = world[story.killed](mortal(world, life), optionsOf(story));
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
    const result = await world[story.next](other, optionsOf(story));
    problems.push(...result.failed.map(({ error }) => String(error)));
    await Promise.race([world.writersRun(), world.clock.sleep(limitMs, new AbortController().signal)]);
    const isConverted = story.next === "convert";
    problems.push(...world.leftovers(isConverted && areVolumesMeant(story) ? "csi" : "in-tree", names));
    problems.push(...objectFaults(world, story, isConverted, pods));
    problems.push(...(await world.lostWrites()), ...world.violations);
    const open = [
      ...(await world.journals(other)),
      ...(await world.replacements(other)),
      ...(await world.templates(other)),
    ].filter(([, { finishedAt }]) => finishedAt === undefined);
    if (open.length > 0) problems.push(`the journal of ${open[0]?.[0]} is not finished`);
  });
  return problems;
}

const areVolumesMeant = ({ objects, volumes }: CrashStory): boolean =>
  objects === undefined || volumes === true;

const podsOf = ({ cluster }: ConversionWorld): string =>
  cluster
    .objects(resources.pods)
    .map(({ metadata }) => `${metadata.name} ${metadata.uid}`)
    .join();

/** What is wrong with the class, the template, or the pods, which must be the very same ones. */
function objectFaults(
  world: ConversionWorld,
  story: CrashStory,
  isConverted: boolean,
  pods: string,
): readonly string[] {
  const { objects: how } = story;
  if (how === undefined) return [];
  const faults: string[] = [];
  const now = podsOf(world);
  if (now !== pods && !areVolumesMeant(story)) faults.push(`pods ${pods} became ${now}`);
  const sets = world.cluster.objects(resources.statefulSets) as Stored<StatefulSet>[];
  const classes = world.cluster.objects(resources.storageClasses) as Stored<StorageClass>[];
  const [set] = sets;
  const named = set?.spec?.volumeClaimTemplates?.[0]?.spec?.storageClassName ?? "";
  const provisioner = classes.find(({ metadata }) => metadata.name === named)?.provisioner;
  if (named.endsWith("-csi") !== (isConverted && how === "beside"))
    faults.push(`the template names ${named}`);
  if ((provisioner === "ebs.csi.aws.com") !== isConverted) faults.push(`${named} is of ${provisioner}`);
  const left = classes.filter(({ metadata }) => metadata.name.endsWith("-csi"));
  if (left.length > 0 && !isConverted) faults.push(`${left[0]?.metadata.name} is left`);
  for (const { metadata } of world.cluster.objects(resources.pods)) {
    if (metadata.ownerReferences?.[0]?.uid !== set?.metadata.uid)
      faults.push(`${metadata.name} is an orphan`);
  }
  return faults;
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
