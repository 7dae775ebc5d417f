/** Kills a conversion at each of its calls, one after the other, each time in a world of its own, and lets another process go on. */

import { resources, type StatefulSet, type StorageClass, type Stored } from "@longshore/kube";
import type { PluginName } from "@longshore/local";
import type { Host } from "@longshore/runtime";
import {
  type CrashFlow,
  type CrashReport,
  crashAtEveryPoint,
  crashInPairs,
  Life,
  mortalClient,
  mortalSeam,
} from "@longshore/testing/kube";
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

/** Before a call nothing is left behind but what is left after the one before it: a process has no effect between two calls. */
const sides = ["after"] as const;

/** Kills it after the calls that `isChosen` chooses by their number and what they are. */
export function crashConversion(
  story: CrashStory,
  isChosen: (call: number, what: string) => boolean = () => true,
): Promise<CrashReport> {
  return crashAtEveryPoint(flowOf(story), { name: nameOf(story), sides, isChosen });
}

/** Kills it, and the process that goes on after it: after all pairs of changes, and at `most` other pairs. A third one ends it. */
export function crashConversionTwice(story: CrashStory, most: number): Promise<CrashReport> {
  return crashInPairs(flowOf(story), most, {
    name: nameOf(story),
    sides,
    isChange: (what) => isChange(0, what),
  });
}

function nameOf({ killed, next, replicas = 1, inline, objects, plugins = [], volumes }: CrashStory): string {
  const what = [
    objects === undefined ? undefined : `template and class ${objects}`,
    inline === true ? "an inline volume" : undefined,
    volumes === true ? "with its volume" : undefined,
    plugins.length > 0 ? plugins.join() : undefined,
    replicas > 1 ? `${replicas} volumes` : undefined,
  ].filter((each) => each !== undefined);
  return `${killed}${what.length > 0 ? ` of ${what.join(", ")}` : ""}, then ${next}`;
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

/** Another process goes on after the one that was killed; the second one may be killed, too. */
const flowOf =
  (story: CrashStory): CrashFlow =>
  async (points) => {
    const calls: string[][] = [];
    await inWorld(story, async (world, names) => {
      const pods = podsOf(world);
      for (const { at, side } of [...points, { at: undefined, side: undefined }]) {
        const isFirst = calls.length === 0;
        const life = new Life(at, side);
        calls.push(life.log);
        // Another machine goes on half of the time: it has no files of the first one.
        const machine = isFirst || (points[0]?.at ?? 0) % 2 === 0 ? "m1" : "m2";
        const going = world[isFirst ? story.killed : story.next](
          mortal(world, life, machine),
          optionsOf(story),
        );
        going.catch(() => {});
        const result = await Promise.race([going, life.death]);
        if (result !== undefined) {
          const problems = result.failed.map(({ error }) => String(error));
          const done = calls.length > 1 ? story.next : story.killed;
          problems.push(...(await faultsOf(world, story, { done, machine, names, pods })));
          if (problems.length > 0) throw new Error(problems.join("; "));
          return;
        }
        // What others make of the state that is left behind.
        await world.clock.sleep(3000, new AbortController().signal);
      }
    });
    return calls;
  };

interface Ended {
  readonly done: "convert" | "undo";
  readonly machine: string;
  readonly names: ReadonlySet<string>;
  /** Those that there were at the beginning. */
  readonly pods: string;
}

/** What is not as it is to be at the end. */
async function faultsOf(
  world: ConversionWorld,
  story: CrashStory,
  { done, machine, names, pods }: Ended,
): Promise<readonly string[]> {
  await Promise.race([world.writersRun(), world.clock.sleep(limitMs, new AbortController().signal)]);
  const isConverted = done === "convert";
  const operator = world.operator(machine);
  const problems = [
    ...world.leftovers(isConverted && areVolumesMeant(story) ? "csi" : "in-tree", names),
    ...objectFaults(world, story, isConverted, pods),
    ...(await world.lostWrites()),
    ...world.violations,
  ];
  const open = [
    ...(await world.journals(operator)),
    ...(await world.replacements(operator)),
    ...(await world.templates(operator)),
  ].filter(([, { finishedAt }]) => finishedAt === undefined);
  if (open.length > 0) problems.push(`the journal of ${open[0]?.[0]} is not finished`);
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
function mortal(world: ConversionWorld, life: Life, machine: string): Operator {
  const { kube, host } = world.operator(machine);
  return { kube: mortalClient(kube, life), host: mortalSeam<Host>(host, life) };
}
