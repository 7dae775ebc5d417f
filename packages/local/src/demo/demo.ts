/**
 * The demo: writers on volumes of the in-tree EBS plugin, the crossing to the CSI driver node by
 * node, the way back, and the proof that no acknowledged write was lost. It runs on any cluster that
 * is handed to it: of processes, or in this process.
 */
import {
  type KubeClient,
  type PersistentVolume,
  type Pod,
  type PodDisruptionBudget,
  resources,
  type Stored,
} from "@longshore/kube";
import {
  type CrossingDirection,
  type CrossingEvent,
  crossingSubject,
  type Platform,
  runCrossing,
} from "@longshore/migration";
import { type RuntimeEnv, withDeadline } from "@longshore/runtime";
import { translateInTreePVToCSI } from "@longshore/translation";
import type { ObservedCluster } from "../cluster/observed-cluster.ts";
import { inTreeHandle } from "../layout/plugins.ts";
import { acknowledgedRecords, lostRecords, rewrittenRecords } from "../records/records.ts";
import { claimVolume, namespace, volumePod } from "../records/volume-pod.ts";
import { writerBudget, writerSet } from "../records/writer-set.ts";
import { isPodReady } from "../workloads/is-pod-ready.ts";
import { csiCallsInWindows, gapsInProof, inTreeCallsInWindows, type PlacedMark } from "./call-window.ts";
import type { DemoReport } from "./demo-report.ts";

/** The cluster that the demo runs on. */
export interface DemoCluster extends ObservedCluster {
  /** Attachments that the disk cloud knows. */
  cloudAttachments(signal: AbortSignal): Promise<number>;
}

/** Options of {@link runDemo}. */
export interface DemoOptions {
  readonly replicas: number;
  /** Program and arguments of the writer, and of a reader that prints the volume's records. */
  readonly writerCommand: readonly string[];
  readonly readerCommand: readonly string[];
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
  const nodesOfClaim = new Map<string, string[]>();
  const { kube } = cluster;

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
  const writers = async (s: AbortSignal) =>
    (await kube.list(resources.pods, { namespace, labelSelector: "app=writer", signal: s })).items;
  const writersReady = async (s: AbortSignal) => {
    const pods = await writers(s);
    for (const pod of pods) noteNode(nodesOfClaim, pod);
    return pods.length === options.replicas && pods.every((pod) => isPodReady(pod));
  };
  const cross = (direction: CrossingDirection) =>
    step(direction === "migrate" ? "carry the cluster to CSI" : "carry it back", async (s) => {
      const platform: Platform = {
        ...cluster.platform,
        noteMark: async (mark, markSignal) => {
          const calls = await cluster.cloudCalls(markSignal);
          marks.push({ mark, seq: calls.at(-1)?.seq ?? 0 });
        },
      };
      const { journalFile } = cluster;
      const onEvent = options.onCrossing === undefined ? {} : { onEvent: options.onCrossing };
      const subject = crossingSubject("aws-ebs");
      await runCrossing(
        { ...env, kube, platform, host: cluster.host },
        { subject, direction, journalFile, ...onEvent },
        s,
      );
      await until(() => writersReady(s), s);
    });

  await step("start writers on in-tree volumes", async (s) => {
    await kube.create(resources.podDisruptionBudgets, await servedBudget(kube, s), { signal: s });
    await kube.create(
      resources.statefulSets,
      writerSet({ replicas: options.replicas, command: options.writerCommand }),
      { signal: s },
    );
    await until(() => writersReady(s), s);
  });
  const acknowledged = () =>
    Promise.all(
      Array.from({ length: options.replicas }, async (_, ordinal) => {
        return acknowledgedRecords(await cluster.podLogs(`writer-${ordinal}`)).size;
      }),
    );
  /** Every writer writes undisturbed for a while, and has something acknowledged in it. */
  const rest = () =>
    withDeadline(env.clock, waitWithinMs, signal, async (s) => {
      const before = await acknowledged();
      await env.clock.sleep(options.restMs ?? 500, s);
      await until(async () => (await acknowledged()).every((count, i) => count > (before[i] ?? 0)), s);
    });
  await rest();
  await cross("migrate");
  await rest();
  await cross("rollback");
  await rest();

  await step("stop writers", async (s) => {
    const ref = { namespace, name: "writer" };
    await kube.patch(
      resources.statefulSets,
      ref,
      { type: "merge", body: { spec: { replicas: 0 } } },
      { signal: s },
    );
    await until(async () => (await writers(s)).length === 0, s);
  });
  const volumes = await step("read every volume back", (s) =>
    Promise.all(
      Array.from({ length: options.replicas }, (_, ordinal) =>
        checkVolume(env, cluster, options, ordinal, s),
      ),
    ),
  );
  const stranded = await step("look for stranded attachments", async (s) => {
    const count = async (countSignal: AbortSignal) => {
      const left = await kube.list(resources.volumeAttachments, { signal: countSignal });
      return left.items.length + (await cluster.cloudAttachments(countSignal));
    };
    await until(async () => (await count(s)) === 0, s).catch(() => {});
    return count(signal);
  });
  const instanceOf = (name: string) => cluster.config.nodes.find((n) => n.name === name)?.instanceId;
  const calls = await cluster.cloudCalls(signal);
  const gaps = gapsInProof(
    calls,
    marks,
    cluster.config.nodes.map((n) => n.name),
  );
  if (gaps.length > 0) throw new Error(`the demo proves nothing about in-tree calls: ${gaps.join("; ")}`);
  return {
    acknowledgedWrites: volumes.reduce((sum, v) => sum + v.acknowledged, 0),
    lostWrites: volumes.reduce((sum, v) => sum + v.lost, 0),
    volumes: volumes.map(({ pv, inTreeHandle, csiHandle, podName, acknowledged }) => ({
      pv,
      inTreeHandle,
      csiHandle,
      nodes: nodesOfClaim.get(podName) ?? [],
      acknowledgedWrites: acknowledged,
    })),
    steps,
    inTreeCallsAfterMigration: inTreeCallsInWindows(calls, marks, instanceOf).length,
    csiCallsAfterMigration: csiCallsInWindows(calls, marks, instanceOf).length,
    strandedAttachments: stranded,
    elapsedMs:
      Math.round(env.clock.monotonicMs() - startMs) +
      (options.stepsBefore ?? []).reduce((sum, s) => sum + s.ms, 0),
  };
}

interface CheckedVolume {
  readonly podName: string;
  readonly pv: string;
  readonly inTreeHandle: string;
  readonly csiHandle: string;
  readonly acknowledged: number;
  readonly lost: number;
}

/** Reads one volume through a new pod on its claim and holds it against what its writers acknowledged. */
async function checkVolume(
  env: RuntimeEnv,
  cluster: DemoCluster,
  options: DemoOptions,
  ordinal: number,
  signal: AbortSignal,
): Promise<CheckedVolume> {
  const { kube } = cluster;
  const podName = `writer-${ordinal}`;
  const claimName = `data-${podName}`;
  const reader = volumePod({
    name: `reader-${ordinal}`,
    command: options.readerCommand,
    volume: claimVolume(claimName),
  });
  await kube.create(resources.pods, reader, { signal });
  let done: Stored<Pod> | undefined;
  const ref = { namespace, name: `reader-${ordinal}` };
  while (done?.status?.phase !== "Succeeded") {
    await env.clock.sleep(pollMs, signal);
    done = await kube.get(resources.pods, ref, { signal });
    if (done?.status?.phase === "Failed")
      throw new Error(`the reader of claim ${claimName} failed: look at its log`);
  }
  const text = (await cluster.podLogs(`reader-${ordinal}`)).join("");
  await kube.delete(resources.pods, ref, { signal });
  while ((await kube.get(resources.pods, ref, { signal })) !== undefined)
    await env.clock.sleep(pollMs, signal);
  const logs = await cluster.podLogs(podName);
  const acknowledged = acknowledgedRecords(logs);
  const lost = new Set([...lostRecords(podName, text, acknowledged), ...rewrittenRecords(logs)]);
  const claim = await kube.get(resources.persistentVolumeClaims, { namespace, name: claimName }, { signal });
  const pv = await kube.get(resources.persistentVolumes, { name: claim?.spec?.volumeName ?? "" }, { signal });
  if (pv === undefined) throw new Error(`claim ${claimName} has no volume any more`);
  return {
    podName,
    pv: pv.metadata.name,
    inTreeHandle: inTreeHandle(pv.spec) ?? "",
    csiHandle: (translateInTreePVToCSI(pv) as PersistentVolume).spec?.csi?.volumeHandle ?? "",
    acknowledged: acknowledged.size,
    lost: lost.size,
  };
}

/** The budget in the version that the server has. */
async function servedBudget(kube: KubeClient, signal: AbortSignal): Promise<PodDisruptionBudget> {
  const version = (await kube.servedVersion(resources.podDisruptionBudgets, { signal })) ?? "v1";
  return { ...writerBudget(), apiVersion: `policy/${version}` as "policy/v1" };
}

function noteNode(nodesOfClaim: Map<string, string[]>, pod: Stored<Pod>): void {
  const nodeName = pod.spec?.nodeName;
  if (nodeName === undefined || !isPodReady(pod)) return;
  const nodes = nodesOfClaim.get(pod.metadata.name) ?? [];
  if (nodes.at(-1) !== nodeName) nodesOfClaim.set(pod.metadata.name, [...nodes, nodeName]);
}
