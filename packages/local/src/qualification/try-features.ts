/** Tries features on a cluster, all at once: each has a claim and a pod of its own, and leaves nothing behind. */
import { type KubeClient, type Pod, resources, type Stored } from "@longshore/kube";
import { type Clock, errorChain, foreignText } from "@longshore/runtime";
import type { ClusterPlugin } from "../layout/plugins.ts";
import { namespace } from "../records/volume-pod.ts";
import { claimNameOf, type FeatureObjects, featureObjects, featureRemedies } from "./features.ts";
import {
  type Feature,
  type FeatureOutcome,
  type FeatureResult,
  features,
  type Skippable,
} from "./qualification-report.ts";
import type { RecordCommands, VolumeWork } from "./volume-work.ts";

/** What features are tried on. */
export interface FeatureEnv {
  readonly clock: Clock;
  readonly kube: KubeClient;
  readonly plugin: ClusterPlugin;
  readonly work: VolumeWork;
  readonly commands: RecordCommands;
}

/** What came of each feature. */
export type FeatureOutcomes = ReadonlyMap<Feature, FeatureOutcome>;

/** How long the first warning may be followed by success: what is refused is also tried once more. */
const patienceMs = 10_000;
/** How long a pod may wait for its node: a scheduler warns of what it merely waits for. */
const schedulingPatienceMs = 30_000;

/** Tries every feature but those of `skip`. `phase` sets the names of the objects apart: those of two attempts differ. */
export async function tryFeatures(
  env: FeatureEnv,
  phase: "in-tree" | "migrated",
  signal: AbortSignal,
  skip: readonly Skippable[] = [],
): Promise<FeatureOutcomes> {
  const wanted = features.filter((feature) => !skip.includes(feature));
  const tried = wanted.map(async (feature, index) => {
    const name = `feature-${index}-${phase}`;
    return [feature, await tryFeature(env, feature, name, signal)] as const;
  });
  return new Map(await Promise.all(tried));
}

/** What came of the features in-tree, beside what came of them migrated. Pure. */
export function comparedFeatures(inTree: FeatureOutcomes, migrated: FeatureOutcomes): FeatureResult[] {
  return features.flatMap((feature): FeatureResult[] => {
    const [before, after] = [inTree.get(feature), migrated.get(feature)];
    if (before === undefined || after === undefined) return [];
    const outcomes = { feature, inTree: before, migrated: after };
    if (before.kind === after.kind) return [{ ...outcomes, verdict: "same" }];
    if (after.kind === "served") return [{ ...outcomes, verdict: "gained" }];
    return [{ ...outcomes, verdict: "lost", remedy: featureRemedies[feature] }];
  });
}

async function tryFeature(
  env: FeatureEnv,
  feature: Feature,
  name: string,
  signal: AbortSignal,
): Promise<FeatureOutcome> {
  const { plugin, commands } = env;
  const isBlock = feature === "volume mode Block";
  const command = isBlock ? commands.deviceWriterCommand : commands.writerCommand;
  const objects = featureObjects(plugin, feature, name, command);
  const claimName = claimNameOf(feature, name);
  const refused = await create(env.kube, objects, signal);
  const outcome = refused ?? (await outcomeOf(env, name, claimName, signal));
  await remove(env, objects, name, claimName, signal);
  return outcome;
}

/** Makes the objects; returns what the API server refused. */
async function create(
  kube: KubeClient,
  { storageClass, claim, pod }: FeatureObjects,
  signal: AbortSignal,
): Promise<FeatureOutcome | undefined> {
  try {
    if (storageClass !== undefined) await kube.create(resources.storageClasses, storageClass, { signal });
    if (claim !== undefined) await kube.create(resources.persistentVolumeClaims, claim, { signal });
    await kube.create(resources.pods, pod, { signal });
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return { kind: "refused", object: "API server", sentence: foreignText(errorChain(error)) };
  }
}

/** Waits until a container runs, or has been kept from it for a while. */
async function outcomeOf(
  { clock, kube, work }: FeatureEnv,
  podName: string,
  claimName: string,
  signal: AbortSignal,
): Promise<FeatureOutcome> {
  let outcome: FeatureOutcome | undefined;
  const startMs = clock.monotonicMs();
  let warnedMs: number | undefined;
  await work.until(async () => {
    const pod = await kube.get(resources.pods, { namespace, name: podName }, { signal });
    if (hasRun(pod)) {
      outcome = { kind: "served" };
      return true;
    }
    const { items } = await kube.list(resources.events, { namespace, signal });
    const warnings = items.filter(
      ({ type, involvedObject: { name = "" } }) => type === "Warning" && [podName, claimName].includes(name),
    );
    const refusals = warnings.filter(({ reason }) => reason !== "FailedScheduling");
    const last = refusals.at(-1) ?? warnings.at(-1);
    const object =
      last === undefined ? `Pod ${podName}` : `${last.involvedObject.kind} ${last.involvedObject.name}`;
    outcome = { kind: "refused", object, sentence: foreignText(last?.message ?? "no container was started") };
    if (refusals.length > 0) warnedMs ??= clock.monotonicMs();
    const nowMs = clock.monotonicMs();
    return warnedMs === undefined ? nowMs - startMs >= schedulingPatienceMs : nowMs - warnedMs >= patienceMs;
  }, signal);
  return outcome as FeatureOutcome;
}

const hasRun = (pod: Stored<Pod> | undefined): boolean =>
  (pod?.status?.containerStatuses ?? []).some(
    ({ state }) => state?.running !== undefined || state?.terminated !== undefined,
  );

/** Takes the objects away, and waits until the volume is gone, too. */
async function remove(
  { kube, work }: FeatureEnv,
  { storageClass }: FeatureObjects,
  podName: string,
  claimName: string,
  signal: AbortSignal,
): Promise<void> {
  const claimRef = { namespace, name: claimName };
  await work.removePod(podName, signal);
  const claim = await kube.get(resources.persistentVolumeClaims, claimRef, { signal });
  if (claim !== undefined) await kube.delete(resources.persistentVolumeClaims, claimRef, { signal });
  await work.until(async () => {
    const left = await kube.get(resources.persistentVolumeClaims, claimRef, { signal });
    const volumes = await kube.list(resources.persistentVolumes, { signal });
    return left === undefined && !volumes.items.some(({ spec }) => spec?.claimRef?.name === claimName);
  }, signal);
  const name = storageClass?.metadata?.name;
  if (name !== undefined) await kube.delete(resources.storageClasses, { name }, { signal });
}
