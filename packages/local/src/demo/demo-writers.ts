/** The demo's writers of one plugin: they are started and stopped, and what is on their volumes is held against what they said. */
import {
  type KubeClient,
  type PersistentVolume,
  type Pod,
  type PodDisruptionBudget,
  resources,
  type Stored,
} from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { translateInTreePVToCSI } from "@longshore/translation";
import { clusterPlugin, inTreeHandle, type PluginName } from "../layout/plugins.ts";
import { acknowledgedRecords, lostRecords, rewrittenRecords } from "../records/records.ts";
import { claimVolume, namespace, volumePod } from "../records/volume-pod.ts";
import {
  writerBudget,
  writerClaimName,
  writerClaims,
  writerCommandOn,
  writerLabels,
  writerSet,
  writerSetName,
} from "../records/writer-set.ts";
import { isPodReady } from "../workloads/is-pod-ready.ts";

/** What the writers run on. */
export interface WritersEnv {
  readonly clock: Clock;
  readonly kube: KubeClient;
  /** Logs of every pod that has had this name in the default namespace. */
  podLogs(podName: string): Promise<readonly string[]>;
}

/** How they run. */
export interface WritersOptions {
  readonly plugin: PluginName;
  /** How many; at least two where they share a volume. */
  readonly replicas: number;
  /** Program and arguments of the writer, and of a reader that prints the volume's records. */
  readonly writerCommand: readonly string[];
  readonly readerCommand: readonly string[];
}

/** What became of one writer's records. */
export interface CheckedVolume {
  readonly plugin: PluginName;
  readonly pv: string;
  readonly inTreeHandle: string;
  readonly csiHandle: string;
  /** Nodes on which the writer ran, in order. */
  readonly nodes: readonly string[];
  readonly acknowledged: number;
  readonly lost: number;
}

const pollMs = 50;

/** The writers of one plugin. */
export class DemoWriters {
  readonly plugin: PluginName;
  readonly #env: WritersEnv;
  readonly #options: WritersOptions;
  readonly #names: readonly string[];
  readonly #nodes = new Map<string, readonly string[]>();

  constructor(env: WritersEnv, options: WritersOptions) {
    const { plugin, replicas } = options;
    const count = clusterPlugin(plugin).isShared ? Math.max(2, replicas) : replicas;
    this.plugin = plugin;
    this.#env = env;
    this.#options = options;
    this.#names = Array.from({ length: count }, (_, ordinal) => `${writerSetName(plugin)}-${ordinal}`);
  }

  /** Makes their objects; they are not ready yet. */
  async start(signal: AbortSignal): Promise<void> {
    const { kube } = this.#env;
    const { plugin } = this;
    const { writerCommand: command } = this.#options;
    for (const claim of writerClaims(plugin)) {
      await kube.create(resources.persistentVolumeClaims, claim, { signal });
    }
    await kube.create(resources.podDisruptionBudgets, await this.#servedBudget(signal), { signal });
    const set = writerSet({ replicas: this.#names.length, command, plugin });
    await kube.create(resources.statefulSets, set, { signal });
  }

  /** Whether all of them run; notes where. */
  async areReady(signal: AbortSignal): Promise<boolean> {
    const pods = await this.#pods(signal);
    for (const pod of pods) this.#noteNode(pod);
    return pods.length === this.#names.length && pods.every((pod) => isPodReady(pod));
  }

  /** How many records each has acknowledged. */
  acknowledged(): Promise<readonly number[]> {
    return Promise.all(
      this.#names.map(async (name) => acknowledgedRecords(await this.#env.podLogs(name)).size),
    );
  }

  /** Scales them down; their pods end after that. */
  async stop(signal: AbortSignal): Promise<void> {
    const ref = { namespace, name: writerSetName(this.plugin) };
    const patch = { type: "merge", body: { spec: { replicas: 0 } } } as const;
    await this.#env.kube.patch(resources.statefulSets, ref, patch, { signal });
  }

  /** Whether none of their pods is left. */
  async areGone(signal: AbortSignal): Promise<boolean> {
    return (await this.#pods(signal)).length === 0;
  }

  /** Reads every volume through a new pod on its claim and holds it against what its writer acknowledged. */
  check(signal: AbortSignal): Promise<readonly CheckedVolume[]> {
    return Promise.all(this.#names.map((_, ordinal) => this.#check(ordinal, signal)));
  }

  async #check(ordinal: number, signal: AbortSignal): Promise<CheckedVolume> {
    const { plugin } = this;
    const { kube } = this.#env;
    const writer = this.#names[ordinal] as string;
    const claimName = writerClaimName(plugin, ordinal);
    const text = await this.#read(writer, claimName, signal);
    const logs = await this.#env.podLogs(writer);
    const acknowledged = acknowledgedRecords(logs);
    const lost = new Set([...lostRecords(writer, text, acknowledged), ...rewrittenRecords(logs)]);
    const claim = await kube.get(
      resources.persistentVolumeClaims,
      { namespace, name: claimName },
      { signal },
    );
    const name = claim?.spec?.volumeName ?? "";
    const pv = await kube.get(resources.persistentVolumes, { name }, { signal });
    if (pv === undefined) throw new Error(`claim ${claimName} has no volume any more`);
    return {
      plugin,
      pv: pv.metadata.name,
      inTreeHandle: inTreeHandle(pv.spec) ?? "",
      csiHandle: (translateInTreePVToCSI(pv) as PersistentVolume).spec?.csi?.volumeHandle ?? "",
      nodes: this.#nodes.get(writer) ?? [],
      acknowledged: acknowledged.size,
      lost: lost.size,
    };
  }

  /** The text that a new pod on the writer's claim finds where the writer wrote. */
  async #read(writer: string, claimName: string, signal: AbortSignal): Promise<string> {
    const { kube, clock, podLogs } = this.#env;
    const ref = { namespace, name: writer.replace(/^writer/, "reader") };
    const command = writerCommandOn(this.plugin, this.#options.readerCommand, writer);
    const reader = volumePod({ name: ref.name, command, volume: claimVolume(claimName) });
    await kube.create(resources.pods, reader, { signal });
    let done: Stored<Pod> | undefined;
    while (done?.status?.phase !== "Succeeded") {
      await clock.sleep(pollMs, signal);
      done = await kube.get(resources.pods, ref, { signal });
      if (done?.status?.phase === "Failed")
        throw new Error(`the reader of claim ${claimName} failed: look at its log`);
    }
    const text = (await podLogs(ref.name)).join("");
    await kube.delete(resources.pods, ref, { signal });
    while ((await kube.get(resources.pods, ref, { signal })) !== undefined) {
      await clock.sleep(pollMs, signal);
    }
    return text;
  }

  async #pods(signal: AbortSignal): Promise<readonly Stored<Pod>[]> {
    const labelSelector = `app=${writerLabels(this.plugin).app}`;
    return (await this.#env.kube.list(resources.pods, { namespace, labelSelector, signal })).items;
  }

  /** The budget in the version that the server has. */
  async #servedBudget(signal: AbortSignal): Promise<PodDisruptionBudget> {
    const version = (await this.#env.kube.servedVersion(resources.podDisruptionBudgets, { signal })) ?? "v1";
    return { ...writerBudget(this.plugin), apiVersion: `policy/${version}` as "policy/v1" };
  }

  #noteNode(pod: Stored<Pod>): void {
    const { name } = pod.metadata;
    const nodeName = pod.spec?.nodeName;
    if (nodeName === undefined || !isPodReady(pod)) return;
    const nodes = this.#nodes.get(name) ?? [];
    if (nodes.at(-1) !== nodeName) this.#nodes.set(name, [...nodes, nodeName]);
  }
}
