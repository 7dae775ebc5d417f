/** A cluster of real processes for one test: one node, one writer, brought up and checked at the end. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Pod, resources, type Stored, type Volume } from "@longshore/kube";
import {
  acknowledgedRecords,
  type ClusterEnv,
  claimVolume,
  clusterConfig,
  deviceReaderCommand,
  deviceWriterCommand,
  lostRecords,
  mayMount,
  processHost,
  readerCommand,
  readPodLogs,
  type SupervisedCluster,
  setWithDevices,
  upCluster,
  volumePod,
  withDevices,
  writerBudget,
  writerSet,
} from "@longshore/local";
import { crossingSubject, runCrossing } from "@longshore/migration";
import { noMeter, silentLogger, systemClock, systemRandom } from "@longshore/runtime";
import { expect } from "vitest";
import { machineStateBelow, nothing } from "./machine-state.ts";

/** The command as a user has it, built. */
export const longshoreCommand = [
  process.execPath,
  fileURLToPath(new URL("../../../packages/cli/bin/longshore.js", import.meta.url)),
];

/** The writer of records, built. */
export const writerScript = fileURLToPath(
  new URL("../../../packages/local/dist/records/writer-program.js", import.meta.url),
);
/** The command with its program as it is built: tests run the sources of `local`, containers cannot. */
const built = (command: readonly string[]) =>
  command.map((word) => word.replace("/packages/local/src/", "/packages/local/dist/"));
const never = new AbortController().signal;

/** A directory whose path is short enough for sockets. */
export function shortDirectory(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), "ls-")));
}

/** How the cluster's disks are mounted. */
export type HostForm = "kernel" | "unprivileged";

/** Real devices and mounts, where the machine allows them. */
export const bestForm = (): HostForm => (mayMount() ? "kernel" : "unprivileged");

/** The cluster under test. */
export class TestCluster {
  readonly env: ClusterEnv;
  readonly cluster: SupervisedCluster;
  readonly dir: string;
  /** The pod that reads a volume back. */
  #reader = (name: string, volume: Omit<Volume, "name">): Pod =>
    volumePod({ name, command: readerCommand, volume });

  private constructor(env: ClusterEnv, cluster: SupervisedCluster, dir: string) {
    this.env = env;
    this.cluster = cluster;
    this.dir = dir;
  }

  /** Brings it up, empty. */
  static async empty(
    nodes = 1,
    form: HostForm = bestForm(),
    options: Parameters<typeof clusterConfig>[2] = {},
  ): Promise<TestCluster> {
    const env: ClusterEnv = {
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      meter: noMeter,
      host: processHost(form),
    };
    const dir = shortDirectory();
    const config = clusterConfig(nodes, form, options);
    const cluster = await upCluster(env, { dir, config, command: longshoreCommand, signal: never });
    return new TestCluster(env, cluster, dir);
  }

  /** Brings it up with one writer that is running. */
  static async up(): Promise<TestCluster> {
    const test = await TestCluster.empty();
    await test.startWriter();
    return test;
  }

  /** Starts one writer, and waits until it runs. */
  async startWriter(): Promise<void> {
    const { kube } = this;
    await kube.create(resources.podDisruptionBudgets, writerBudget(), { signal: never });
    const command = [process.execPath, writerScript, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "10"];
    await kube.create(resources.statefulSets, writerSet({ replicas: 1, command }), { signal: never });
    await this.writerRuns();
  }

  /** Starts one writer on a device, and waits until it runs. */
  async startDeviceWriter(): Promise<void> {
    this.#reader = (name, volume) =>
      withDevices(volumePod({ name, command: built(deviceReaderCommand()), volume }));
    const { kube } = this;
    await kube.create(resources.podDisruptionBudgets, writerBudget(), { signal: never });
    const set = writerSet({ replicas: 1, command: built(deviceWriterCommand(10)) });
    await kube.create(resources.statefulSets, setWithDevices(set), { signal: never });
    await this.writerRuns();
  }

  get kube() {
    return this.cluster.kube;
  }

  /** Waits until `holds`, on a value, for at most a minute. */
  async until(what: string, holds: () => Promise<boolean>, withinMs = 60_000): Promise<void> {
    const untilMs = performance.now() + withinMs;
    while (!(await holds().catch(() => false))) {
      if (performance.now() > untilMs) throw new Error(`${what}: not within ${withinMs} ms`);
      await systemClock.sleep(10, never);
    }
  }

  /** Waits until the writer has acknowledged ten records more. */
  async writerRuns(): Promise<void> {
    let before: number | undefined;
    await this.until("the writer writes", async () => {
      const pod = await this.pod("writer-0");
      if (pod?.status?.phase !== "Running" || pod.metadata.deletionTimestamp !== undefined) return false;
      const count = (await this.acknowledged()).size;
      before ??= count;
      return count >= before + 10;
    });
  }

  async acknowledged(): Promise<ReadonlySet<number>> {
    return acknowledgedRecords(await this.#logs("writer-0"));
  }

  /** Signals a process of the cluster, which must be running, before this returns. */
  signal(processName: string, signal: NodeJS.Signals): void {
    process.kill(this.pidOf(processName), signal);
  }

  pidOf(processName: string): number {
    const record = readFileSync(this.cluster.layout.pidFile(processName), "utf8");
    return (JSON.parse(record) as { readonly pid: number }).pid;
  }

  /** A pod of the default namespace. */
  pod(name: string): Promise<Stored<Pod> | undefined> {
    return this.kube.get(resources.pods, { namespace: "default", name }, { signal: never });
  }

  /** Mounts on a node, by target. */
  async mounts(nodeName = "node-1"): Promise<string[]> {
    const { host } = this.env;
    const below = await host.listMounts(`${this.cluster.layout.nodeDir(nodeName)}/`);
    return below.map((mount) => mount.target);
  }

  /** Runs a crossing in this process. */
  async cross(direction: "migrate" | "rollback", onStep?: (step: string) => void): Promise<void> {
    const { kube, platform, layout } = this.cluster;
    await runCrossing(
      { ...this.env, kube, platform },
      {
        subject: crossingSubject("aws-ebs"),
        direction,
        journalFile: `${layout.dir}/crossing.json`,
        ...(onStep === undefined ? {} : { onEvent: (e) => e.kind === "stepStarted" && onStep(e.step) }),
      },
      never,
    );
  }

  /** The number of the last call that the disk cloud has seen. */
  async lastCloudCall(): Promise<number> {
    return (await this.cluster.cloud.calls(0, never)).at(-1)?.seq ?? 0;
  }

  /** In-tree calls that the disk cloud has seen since, by operation. */
  async inTreeCallsSince(seq: number): Promise<string[]> {
    const calls = await this.cluster.cloud.calls(seq, never);
    return calls.filter((call) => call.path === "in-tree").map((call) => call.op);
  }

  /** Stops the writer, reads its volume back and expects every acknowledged record; then nothing attached. */
  async expectNothingLost(): Promise<void> {
    const { kube } = this;
    const set = { namespace: "default", name: "writer" };
    await kube.patch(
      resources.statefulSets,
      set,
      { type: "merge", body: { spec: { replicas: 0 } } },
      { signal: never },
    );
    const gone = (name: string) =>
      this.until(`${name} is gone`, async () => (await this.pod(name)) === undefined);
    await gone("writer-0");
    const reader = { namespace: "default", name: "reader" };
    await kube.create(resources.pods, this.#reader(reader.name, claimVolume("data-writer-0")), {
      signal: never,
    });
    await this.until(
      "the reader is done",
      async () => (await this.pod("reader"))?.status?.phase === "Succeeded",
    );
    const acknowledged = await this.acknowledged();
    expect(acknowledged.size).toBeGreaterThan(0);
    expect(lostRecords("writer-0", (await this.#logs("reader")).join(""), acknowledged)).toEqual([]);
    await kube.delete(resources.pods, reader, { signal: never });
    await gone("reader");
    await this.until("nothing is attached", async () => {
      const attachments = await kube.list(resources.volumeAttachments, { signal: never });
      const disks = await this.cluster.cloud.listDisks(never);
      return attachments.items.length === 0 && disks.every((d) => d.attachments.length === 0);
    });
    expect(await this.mounts()).toEqual([]);
  }

  /** Takes it down and expects the machine as it was. */
  async down(): Promise<void> {
    await this.cluster.remove();
    expect(machineStateBelow(this.dir)).toEqual(nothing);
    rmSync(this.dir, { recursive: true, force: true });
  }

  #logs(podName: string): Promise<string[]> {
    return readPodLogs(this.env.host, this.cluster.layout.podLogDir, "default", podName);
  }
}
