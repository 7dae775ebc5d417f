/**
 * One seeded simulation of a crossing and its way back: components crash and come back at random
 * moments, requests and replies get lost, calls take their time. The contract is checked at every
 * step; once the faults end, everything must come to rest in the right state.
 *
 * Invariant: the same seed produces the same trace, line by line.
 */
import { resources } from "@longshore/kube";
import {
  acknowledgedRecords,
  claimVolume,
  clusterConfig,
  createInProcessCluster,
  type InProcessCluster,
  lostRecords,
  readerProgram,
  recordPrograms,
  volumePod,
  writerBudget,
  writerProgram,
  writerSet,
} from "@longshore/local";
import { type CrossingDirection, crossingSubject, runCrossing } from "@longshore/migration";
import {
  type Logger,
  noMeter,
  type Random,
  type RuntimeEnv,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import type { CloudCaller } from "@longshore/volumes";
import { ContractWatch } from "./contract-watch.ts";
import { type CallGate, Life, type SeamCall } from "./cut.ts";
import { defaultFaultRates, type FaultRates, faultyGate } from "./faults.ts";
import { type CloudFaultRates, defaultCloudFaultRates, FaultyCloud } from "./faulty-cloud.ts";
import { attachmentCalls, worldOf } from "./world.ts";

/** What to simulate. */
export interface SimulationOptions {
  readonly seed: number;
  /** Default 2 nodes with one writer each. */
  readonly nodes?: number;
  /** Default {@link defaultFaultRates}; undefined rates mean no lost or slow calls. */
  readonly rates?: FaultRates;
  /** Default {@link defaultCloudFaultRates}; `faultFree`: the cloud carries every call out at once. */
  readonly cloud?: CloudFaultRates | "faultFree";
  /** Whether components crash; default true. */
  readonly crashes?: boolean;
  /** Called for every line of the trace. */
  readonly onTrace?: (line: string) => void;
  readonly logger?: Logger;
}

/** How a simulation went. */
export interface SimulationResult {
  readonly seed: number;
  /** Empty: the contract held. */
  readonly violations: readonly string[];
  readonly crashes: number;
  readonly faults: number;
  /** Calls at the seams, each a step at which the contract was checked. */
  readonly steps: number;
  readonly acknowledgedWrites: number;
  /** Virtual milliseconds. */
  readonly elapsedMs: number;
  /** A sum over the trace; equal for equal runs. */
  readonly traceHash: string;
}

const calmWithinMs = 15 * 60_000;
const crossingWithinMs = 60 * 60_000;

/** Runs one seed. Never throws for what the simulated world does; a stuck world is a violation of C8. */
export async function simulateCrossing(options: SimulationOptions): Promise<SimulationResult> {
  const clock = new VirtualClock();
  const run = new Simulation(clock, new SeededRandom(options.seed), options);
  try {
    await clock.run(run.play(), { limitMs: crossingWithinMs + calmWithinMs * 2 });
  } catch (error) {
    run.watch.report("C8", `${error instanceof Error ? error.message : String(error)}; ${run.standstill()}`);
  }
  return run.result();
}

class Simulation {
  readonly watch = new ContractWatch(
    (c) => this.#trace(`${c.path} ${c.op} ${c.diskId} ${c.nodeName}`),
    (violation) => this.#trace(`broken: ${violation}`),
  );
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #options: SimulationOptions;
  readonly #lives = new Map<string, Life>();
  readonly #comeBacks: Promise<void>[] = [];
  readonly #faultyCloud: FaultyCloud;
  readonly #signal = new AbortController().signal;
  #cluster: InProcessCluster | undefined;
  #healed = false;
  #crashes = 0;
  #faults = 0;
  #steps = 0;
  #acknowledged = 0;
  #hash = 0x811c9dc5;

  constructor(clock: VirtualClock, random: Random, options: SimulationOptions) {
    this.#clock = clock;
    this.#random = random;
    this.#options = options;
    this.#faultyCloud = new FaultyCloud({
      clock,
      random: random.fork("cloud"),
      rates: () => this.#cloudRates(),
      onFault: (what) => {
        this.#faults++;
        this.#trace(`cloud: ${what}`);
      },
      onEffect: (call) => this.watch.asked(call),
      onAttached: (call) => {
        if (this.#cluster !== undefined) this.watch.attachAnswered(call, worldOf(this.#cluster));
      },
    });
  }

  result(): SimulationResult {
    return {
      seed: this.#options.seed,
      violations: this.watch.violations,
      crashes: this.#crashes,
      faults: this.#faults,
      steps: this.#steps,
      acknowledgedWrites: this.#acknowledged,
      elapsedMs: Math.round(this.#clock.monotonicMs()),
      traceHash: this.#hash.toString(16).padStart(8, "0"),
    };
  }

  /** The state of the cluster, for a simulation that did not come to its end. */
  standstill(): string {
    const cluster = this.#cluster;
    if (cluster === undefined) return "no cluster came up";
    const pods = cluster.objects(resources.pods).map((pod) => {
      const deleting = pod.metadata.deletionTimestamp === undefined ? "" : " deleting";
      const ready = pod.status?.conditions?.find((c) => c.type === "Ready")?.status;
      return `${pod.metadata.name} ${pod.status?.phase} ready=${ready} on ${pod.spec?.nodeName}${deleting}`;
    });
    const budgets = cluster
      .objects(resources.podDisruptionBudgets)
      .map((b) => `budget ${JSON.stringify(b.status)}`);
    const nodes = cluster.objects(resources.nodes).map((n) => {
      const ready = n.status?.conditions?.find((c) => c.type === "Ready");
      const names = (n.status?.volumesAttached ?? []).map((v) => v.name);
      return `${n.metadata.name} ready=${ready?.status} (${ready?.message}) unschedulable=${n.spec?.unschedulable} taints=${n.spec?.taints?.map((t) => t.key)} attached=${names} inUse=${n.status?.volumesInUse}`;
    });
    const events = cluster
      .objects(resources.events)
      .slice(-8)
      .map((e) => `${e.involvedObject.name} ${e.reason} ${e.message}`);
    return [...pods, ...budgets, ...nodes, ...events].join("; ");
  }

  async play(): Promise<void> {
    const env: RuntimeEnv = {
      clock: this.#clock,
      random: this.#random.fork("cluster"),
      logger: this.#options.logger ?? silentLogger,
      meter: noMeter,
    };
    const nodes = this.#options.nodes ?? 2;
    const config = clusterConfig(nodes, "unprivileged");
    this.#healed = true; // No faults while the cluster comes up.
    const faulty = faultyGate(
      { clock: this.#clock, random: this.#random.fork("faults") },
      () => (this.#healed ? undefined : (this.#options.rates ?? defaultFaultRates)),
      (call, fault) => {
        if (fault !== undefined) this.#faults++;
        if (fault !== undefined) this.#trace(`${call.component} ${call.seam}.${call.method} ${fault}`);
        this.#step();
      },
    );
    // A stream of its own: how much the other faults draw does not shift the draws of deaths.
    const deaths = this.#random.fork("deaths");
    const gate: CallGate = (call, proceed) =>
      faulty(call, () => (this.#isDeadly(call, deaths) ? this.#dieAt(call, deaths, proceed) : proceed()));
    const cluster = await createInProcessCluster(env, {
      config,
      programs: (host) => recordPrograms(this.#clock, host),
      isolate: (name, seams) => {
        const life = new Life(name, gate);
        this.#lives.set(name, life);
        const cloudFor = (caller: CloudCaller) =>
          this.#faultyCloud.around(seams.cloudFor(caller), attachmentCalls(config, caller));
        return life.seams({ ...seams, cloudFor });
      },
    });
    this.#cluster = cluster;
    await this.#startWriters(cluster, nodes);
    await this.#writersRun(cluster, nodes);
    this.#healed = false;
    const ended = new AbortController();
    const crashes =
      this.#options.crashes === false ? Promise.resolve() : this.#crashAtRandom(cluster, ended.signal);
    await this.#cross(env, cluster, "migrate");
    await this.#clock.sleep(5000, this.#signal);
    await this.#cross(env, cluster, "rollback");
    this.#healed = true;
    ended.abort(new Error("healed"));
    await crashes;
    for (const name of cluster.componentNames) if (!cluster.isRunning(name)) await cluster.start(name);
    await this.#writersRun(cluster, nodes);
    await this.#expectNothingLost(cluster, nodes);
    await this.#expectNothingStranded(cluster);
    await cluster.stop();
  }

  async #startWriters(cluster: InProcessCluster, replicas: number): Promise<void> {
    const { kube } = cluster;
    await kube.create(resources.podDisruptionBudgets, writerBudget(), { signal: this.#signal });
    const command = [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "700"];
    await kube.create(resources.statefulSets, writerSet({ replicas, command }), { signal: this.#signal });
  }

  /** Waits until every writer has acknowledged something new. */
  async #writersRun(cluster: InProcessCluster, replicas: number): Promise<void> {
    for (let ordinal = 0; ordinal < replicas; ordinal++) {
      const before = (await this.#acks(cluster, ordinal)).size;
      await this.#until(
        `writer-${ordinal} writes`,
        async () => (await this.#acks(cluster, ordinal)).size > before,
      );
    }
  }

  /** Runs the crossing; where it ends in an error, it is begun again, as an administrator would. */
  async #cross(env: RuntimeEnv, cluster: InProcessCluster, direction: CrossingDirection): Promise<void> {
    this.#trace(`crossing: ${direction}`);
    // One host for all tries: it holds the journal from which the next run resumes.
    const host = new SimulatedHost({ name: `operator-${direction}` });
    for (;;) {
      try {
        await runCrossing(
          { ...env, kube: cluster.kube, platform: cluster.platform, host },
          {
            subject: crossingSubject("aws-ebs"),
            direction,
            journalFile: "/crossing.json",
            onEvent: (e) =>
              this.#trace(
                e.kind === "warning"
                  ? `crossing: warns of ${e.finding.object}`
                  : `crossing: ${e.kind} ${e.step} ${e.nodeName ?? ""}`,
              ),
          },
          this.#signal,
        );
        return;
      } catch (error) {
        this.#trace(`crossing ended: ${error instanceof Error ? error.message : String(error)}`);
        if (this.#clock.monotonicMs() > crossingWithinMs) throw error;
        await this.#clock.sleep(2000, this.#signal);
      }
    }
  }

  async #crashAtRandom(cluster: InProcessCluster, until: AbortSignal): Promise<void> {
    const random = this.#random.fork("crashes");
    const pause = (ms: number) =>
      this.#clock.sleep(ms, until).then(
        () => true,
        () => false,
      );
    while (await pause(20 + random.below(1500, "until the next crash"))) {
      const victims = [...cluster.componentNames, "apiserver"];
      const name = victims[random.below(victims.length, "victim")] ?? "apiserver";
      if (name === "apiserver") {
        this.#crashes++;
        this.#trace("crash apiserver");
        cluster.restartApiServer();
        continue;
      }
      if (!cluster.isRunning(name)) continue;
      this.#crash(cluster, name, 50 + random.below(3000, "time down"));
    }
    await Promise.all(this.#comeBacks);
  }

  /** Cuts a component off and starts it again later. */
  #crash(cluster: InProcessCluster, name: string, downMs: number): void {
    this.#crashes++;
    this.#trace(`crash ${name}`);
    cluster.drop(name);
    for (const endpoint of this.#lives.get(name)?.cut() ?? []) cluster.csi.crash(endpoint);
    this.#comeBacks.push(
      this.#clock.sleep(downMs, this.#signal).then(async () => {
        this.#trace(`start ${name}`);
        await cluster.start(name);
      }),
    );
  }

  /** Whether the component dies when it asks the cloud for an attach or a detach. */
  #isDeadly({ component, seam, method }: SeamCall, random: Random): boolean {
    const rates = this.#options.crashes === false ? undefined : this.#cloudRates();
    if (rates === undefined || seam !== "cloud" || !["attachDisk", "detachDisk"].includes(method))
      return false;
    // Each death schedules a start: a second death while it is down would start it twice.
    if (this.#cluster?.isRunning(component) !== true) return false;
    return random.below(1000, `death of ${component}`) < rates.deathAtChange;
  }

  /** Before the call leaves, or while the cloud is at it. */
  async #dieAt<T>({ component }: SeamCall, random: Random, proceed: () => Promise<T>): Promise<T> {
    const downMs = 50 + random.below(3000, "time down");
    const answer = random.below(2, "when") === 0 ? undefined : proceed();
    answer?.catch(() => {});
    if (this.#cluster !== undefined) this.#crash(this.#cluster, component, downMs);
    // The life is cut by now: a call that has not left is lost there, and its caller waits for ever.
    return answer ?? proceed();
  }

  #cloudRates(): CloudFaultRates | undefined {
    const { cloud = defaultCloudFaultRates } = this.#options;
    return this.#healed || cloud === "faultFree" ? undefined : cloud;
  }

  async #expectNothingLost(cluster: InProcessCluster, replicas: number): Promise<void> {
    const { kube } = cluster;
    const signal = this.#signal;
    const set = { namespace: "default", name: "writer" };
    await kube.patch(
      resources.statefulSets,
      set,
      { type: "merge", body: { spec: { replicas: 0 } } },
      { signal },
    );
    await this.#until(
      "the writers end",
      async () => (await kube.list(resources.pods, { signal })).items.length === 0,
    );
    for (let ordinal = 0; ordinal < replicas; ordinal++) {
      const name = `reader-${ordinal}`;
      await kube.create(
        resources.pods,
        volumePod({
          name,
          command: [readerProgram, "$(LONGSHORE_MOUNT_DATA)"],
          volume: claimVolume(`data-writer-${ordinal}`),
        }),
        { signal },
      );
      const ref = { namespace: "default", name };
      await this.#until(
        `${name} is done`,
        async () => (await kube.get(resources.pods, ref, { signal }))?.status?.phase === "Succeeded",
      );
      const acknowledged = await this.#acks(cluster, ordinal);
      const lost = lostRecords(`writer-${ordinal}`, (await cluster.podLogs(name)).join(""), acknowledged);
      this.#acknowledged += acknowledged.size;
      if (lost.length > 0)
        this.watch.report("C3", `writer-${ordinal} lost ${lost.length} acknowledged records`);
      await kube.delete(resources.pods, ref, { signal });
    }
  }

  async #expectNothingStranded(cluster: InProcessCluster): Promise<void> {
    const signal = this.#signal;
    await this.#until("nothing is attached", async () => {
      const attachments = await cluster.kube.list(resources.volumeAttachments, { signal });
      return attachments.items.length === 0 && worldOf(cluster).attachments.length === 0;
    }).catch((error: unknown) =>
      this.watch.report("C4", error instanceof Error ? error.message : String(error)),
    );
    const volumes = await cluster.kube.list(resources.persistentVolumes, { signal });
    const named = new Set(
      volumes.items.map((pv) => pv.spec?.awsElasticBlockStore?.volumeID.split("/").at(-1) ?? ""),
    );
    for (const diskId of worldOf(cluster).disks) {
      if (!named.has(diskId)) this.watch.report("C4", `disk ${diskId} has no volume`);
    }
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + calmWithinMs;
    while (!(await holds().catch(() => false))) {
      if (this.#clock.monotonicMs() > untilMs)
        throw new Error(`${what}: not within a quarter of an hour without faults`);
      await this.#clock.sleep(200, this.#signal);
    }
  }

  /** Every call at a seam is a step: whatever it changed, the contract must hold after it. */
  #step(): void {
    this.#steps++;
    const cluster = this.#cluster;
    if (cluster === undefined) return;
    this.watch.check(worldOf(cluster));
    for (const violation of cluster.disks.violations) this.watch.report("C2", violation);
  }

  async #acks(cluster: InProcessCluster, ordinal: number): Promise<ReadonlySet<number>> {
    return acknowledgedRecords(await cluster.podLogs(`writer-${ordinal}`));
  }

  #trace(line: string): void {
    const text = `${Math.round(this.#clock.monotonicMs())} ${line}`;
    // FNV-1a: two runs of one seed are compared by this number instead of by their traces.
    for (let i = 0; i < text.length; i++) {
      this.#hash = Math.imul(this.#hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
    }
    this.#options.onTrace?.(text);
  }
}
