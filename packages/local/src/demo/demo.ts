/**
 * The demo: writers on volumes of in-tree plugins, the crossing to the CSI drivers node by node, the way back, and the
 * proof that no acknowledged write was lost. It runs on any cluster that is handed to it: of processes, or in this process.
 */

import { type KubeClient, resources } from "@longshore/kube";
import {
  type CrossingDirection,
  type CrossingEvent,
  crossingSubject,
  type Platform,
  runCrossing,
} from "@longshore/migration";
import { type RuntimeEnv, withDeadline } from "@longshore/runtime";
import type { CountedCall, ObservedCluster } from "../cluster/observed-cluster.ts";
import { defaultPlugins } from "../layout/cluster-config.ts";
import { clusterPlugin, type PluginName } from "../layout/plugins.ts";
import {
  csiCallsInWindows,
  gapsInProof,
  inTreeCallsInWindows,
  isListingOfRestart,
  type PlacedMark,
  pluginCalled,
} from "./call-window.ts";
import type { DemoReport } from "./demo-report.ts";
import { DemoWriters, type WritersOptions } from "./demo-writers.ts";

/** The cluster that the demo runs on. */
export interface DemoCluster extends ObservedCluster {
  /** Attachments that the disk cloud knows. */
  cloudAttachments(signal: AbortSignal): Promise<number>;
}

/** Options of {@link runDemo}. */
export interface DemoOptions extends Omit<WritersOptions, "plugin"> {
  /** The plugins that are carried, one after the other; default {@link defaultPlugins}. */
  readonly plugins?: readonly PluginName[];
  /** How long the writers write undisturbed between the parts, in milliseconds. */
  readonly restMs?: number;
  readonly onStep?: (name: string, ms: number) => void;
  readonly onCrossing?: (event: CrossingEvent) => void;
  /** What has been done before, such as bringing the cluster up. */
  readonly stepsBefore?: readonly { readonly name: string; readonly ms: number }[];
}

const pollMs = 50;
const waitWithinMs = 5 * 60_000;

/** Runs the demo and proves its claims. */
export async function runDemo(
  env: RuntimeEnv,
  cluster: DemoCluster,
  options: DemoOptions,
  signal: AbortSignal,
): Promise<DemoReport> {
  const startMs = env.clock.monotonicMs();
  const steps: { name: string; ms: number }[] = [...(options.stepsBefore ?? [])];
  const marks: PlacedMark[] = [];
  const { kube } = cluster;
  const plugins = options.plugins ?? defaultPlugins;
  const writersEnv = { clock: env.clock, kube, podLogs: (name: string) => cluster.podLogs(name) };
  const writers = plugins.map((plugin) => new DemoWriters(writersEnv, { ...options, plugin }));

  const step = async <T>(name: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const fromMs = env.clock.monotonicMs();
    const result = await withDeadline(env.clock, waitWithinMs, signal, work);
    const ms = Math.round(env.clock.monotonicMs() - fromMs);
    steps.push({ name, ms });
    options.onStep?.(name, ms);
    return result;
  };
  const until = async (holds: () => Promise<boolean>, s: AbortSignal) => {
    while (!(await holds())) await env.clock.sleep(pollMs, s);
  };
  const all = async (holds: (of: DemoWriters) => Promise<boolean>) =>
    (await Promise.all(writers.map(holds))).every((isSo) => isSo);
  const allReady = (s: AbortSignal) => until(() => all((of) => of.areReady(s)), s);
  /** One plugin after the other. */
  const crossAll = async (direction: CrossingDirection) => {
    for (const plugin of plugins) {
      await step(crossingStep(plugin, direction, plugins.length), async (s) => {
        await cross(env, cluster, { plugin, direction, plugins, marks }, options, s);
        await allReady(s);
      });
    }
  };

  await step("start writers on in-tree volumes", async (s) => {
    await Promise.all(writers.map((of) => of.start(s)));
    await allReady(s);
  });
  const acknowledged = async () => (await Promise.all(writers.map((of) => of.acknowledged()))).flat();
  /** Every writer writes undisturbed for a while, and has something acknowledged in it. */
  const rest = () =>
    withDeadline(env.clock, waitWithinMs, signal, async (s) => {
      const before = await acknowledged();
      await env.clock.sleep(options.restMs ?? 500, s);
      await until(async () => (await acknowledged()).every((count, i) => count > (before[i] ?? 0)), s);
    });
  await rest();
  await crossAll("migrate");
  await rest();
  await crossAll("rollback");
  await rest();

  await step("stop writers", async (s) => {
    await Promise.all(writers.map((of) => of.stop(s)));
    await until(() => all((of) => of.areGone(s)), s);
  });
  const checked = await step("read every volume back", async (s) =>
    (await Promise.all(writers.map((of) => of.check(s)))).flat(),
  );
  const stranded = await step("look for stranded attachments", async (s) => {
    await until(async () => (await attachments(kube, cluster, s)) === 0, s).catch(() => {});
    return attachments(kube, cluster, signal);
  });
  const counts = countCalls(cluster, await cluster.cloudCalls(signal), marks, plugins);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  return {
    acknowledgedWrites: sum(checked.map((v) => v.acknowledged)),
    lostWrites: sum(checked.map((v) => v.lost)),
    volumes: checked.map(
      ({ plugin, pv, inTreeHandle, csiHandle, nodes, acknowledged: acknowledgedWrites }) => ({
        plugin,
        pv,
        inTreeHandle,
        csiHandle,
        nodes,
        acknowledgedWrites,
      }),
    ),
    steps,
    inTreeCallsAfterMigration: sum(counts.map((of) => of.inTreeCallsAfterMigration)),
    csiCallsAfterMigration: sum(counts.map((of) => of.csiCallsAfterMigration)),
    plugins: counts,
    strandedAttachments: stranded,
    elapsedMs:
      Math.round(env.clock.monotonicMs() - startMs) + sum((options.stepsBefore ?? []).map(({ ms }) => ms)),
  };
}

function crossingStep(plugin: PluginName, direction: CrossingDirection, count: number): string {
  if (count === 1) return direction === "migrate" ? "carry the cluster to CSI" : "carry it back";
  return direction === "migrate" ? `carry ${plugin} to CSI` : `carry ${plugin} back`;
}

interface DemoCrossing {
  readonly plugin: PluginName;
  readonly direction: CrossingDirection;
  /** All that are carried. */
  readonly plugins: readonly PluginName[];
  /** Where the marks of the crossing go. */
  readonly marks: PlacedMark[];
}

async function cross(
  env: RuntimeEnv,
  cluster: DemoCluster,
  { plugin, direction, plugins, marks }: DemoCrossing,
  { onCrossing }: DemoOptions,
  signal: AbortSignal,
): Promise<void> {
  const platform: Platform = {
    ...cluster.platform,
    noteMark: async (mark, markSignal) => {
      const calls = await cluster.cloudCalls(markSignal);
      marks.push({ mark, seq: calls.at(-1)?.seq ?? 0 });
    },
  };
  const { kube, host } = cluster;
  const others = plugins.filter((name) => name !== plugin);
  await runCrossing(
    { ...env, kube, platform, host },
    {
      subject: crossingSubject(plugin),
      direction,
      journalFile: cluster.journalFile(plugin),
      otherJournalFiles: others.map((name) => cluster.journalFile(name)),
      ...(onCrossing === undefined ? {} : { onEvent: onCrossing }),
    },
    signal,
  );
}

/** In the API and at the disk cloud. */
async function attachments(kube: KubeClient, cluster: DemoCluster, signal: AbortSignal): Promise<number> {
  const left = await kube.list(resources.volumeAttachments, { signal });
  return left.items.length + (await cluster.cloudAttachments(signal));
}

/** The calls of each plugin's provider while it was migrated. @throws Error where counting them would prove nothing */
function countCalls(
  { config }: DemoCluster,
  calls: readonly CountedCall[],
  marks: readonly PlacedMark[],
  plugins: readonly PluginName[],
): DemoReport["plugins"] {
  const instanceOf = (name: string) => config.nodes.find((n) => n.name === name)?.instanceId;
  const nodeNames = config.nodes.map(({ name }) => name);
  const inTreeName = (plugin: PluginName) => clusterPlugin(plugin).inTreeName;
  const gaps = gapsInProof(calls, marks, nodeNames, plugins.map(inTreeName));
  if (gaps.length > 0) throw new Error(`the demo proves nothing about in-tree calls: ${gaps.join("; ")}`);
  return plugins.map((plugin) => {
    const own = calls.filter((call) => pluginCalled(call) === inTreeName(plugin));
    const inTree = inTreeCallsInWindows(own, marks, instanceOf);
    // Alone, nothing restarts the control plane while the plugin is migrated.
    const listings = plugins.length === 1 ? 0 : inTree.filter(isListingOfRestart).length;
    return {
      plugin,
      inTreeCallsAfterMigration: inTree.length - listings,
      csiCallsAfterMigration: csiCallsInWindows(own, marks, instanceOf).length,
      listingsOfRestarts: listings,
    };
  });
}
