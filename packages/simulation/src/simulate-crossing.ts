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
import {
  type CrossingDirection,
  type CrossingEvent,
  crossingSubject,
  runCrossing,
} from "@longshore/migration";
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
import { type CallGate, Life, mayChange, type SeamCall } from "./cut.ts";
import type { DiskTimeline } from "./disk-timeline.ts";
import { FaultDraws } from "./fault-draws.ts";
import {
  type CallFault,
  defaultFaultRates,
  type FaultRates,
  faultyGate,
  restingFaultRates,
} from "./faults.ts";
import { type CloudFaultRates, defaultCloudFaultRates, FaultyCloud } from "./faulty-cloud.ts";
import { Rest } from "./rest.ts";
import type { SeedOptions, SeedResult } from "./seed-result.ts";
import { standstill } from "./standstill.ts";
import { TraceHash, type TraceKind, traceLine } from "./trace.ts";
import { attachmentCalls, worldOf } from "./world.ts";

/** What to simulate. */
export interface SimulationOptions extends SeedOptions {
  /** Default 2 nodes with one writer each. */
  readonly nodes?: number;
  /** Default {@link defaultFaultRates}; undefined rates mean no lost or slow calls. */
  readonly rates?: FaultRates;
  /** Default {@link defaultCloudFaultRates}; `faultFree`: the cloud carries every call out at once. */
  readonly cloud?: CloudFaultRates | "faultFree";
  /** Whether components crash; default true. */
  readonly crashes?: boolean;
  /**
   * How long the cluster rests between the crossing and its way back, in milliseconds: its programs work at long intervals, and
   * components crash every ten minutes instead of every second. Default 5 s, of which nothing rests.
   */
  readonly restMs?: number;
  /** The run ends after this step. */
  readonly until?: number;
  /** Follows who holds which disk. */
  readonly timeline?: DiskTimeline;
  readonly logger?: Logger;
}

/** How a simulation went. */
export interface SimulationResult extends SeedResult {
  readonly crashes: number;
  readonly faults: number;
  readonly acknowledgedWrites: number;
}

const calmWithinMs = 15 * 60_000;
const crossingWithinMs = 60 * 60_000;
const restMsDefault = 5_000;
/** Below it, a pause is no rest: all goes on as in the crossing. */
const restMsMin = 60_000;
const restingCrashMs = 20 * 60_000;

/** Runs one seed. Never throws for what the simulated world does; a stuck world is a violation of C8. */
export async function simulateCrossing(options: SimulationOptions): Promise<SimulationResult> {
  const clock = new VirtualClock();
  const run = new Simulation(clock, new SeededRandom(options.seed), options);
  const limitMs = crossingWithinMs + calmWithinMs * 2 + (options.restMs ?? restMsDefault);
  try {
    await clock.run(Promise.race([run.play(), run.stopped]), { limitMs });
  } catch (error) {
    run.watch.report("C8", `${error instanceof Error ? error.message : String(error)}; ${run.standstill()}`);
  }
  return run.result();
}

class Simulation {
  readonly watch = new ContractWatch(
    ({ op, path, diskId, nodeName }) => this.#trace("disk", diskId, diskText(op, path, nodeName)),
    (violation) => this.#trace("broken", "the contract is broken:", violation),
  );
  /** Resolves when the step has come after which the run ends. */
  readonly stopped: Promise<void>;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #options: SimulationOptions;
  readonly #lives = new Map<string, Life>();
  readonly #comeBacks: Promise<void>[] = [];
  readonly #faultyCloud: FaultyCloud;
  readonly #draws: FaultDraws;
  readonly #rest: Rest;
  readonly #traceHash = new TraceHash();
  readonly #signal = new AbortController().signal;
  #stop: () => void = () => {};
  #hasStopped = false;
  #cluster: InProcessCluster | undefined;
  #healed = false;
  #crashes = 0;
  #faults = 0;
  #steps = 0;
  #acknowledged = 0;

  constructor(clock: VirtualClock, random: Random, options: SimulationOptions) {
    this.#clock = clock;
    this.#random = random;
    this.#options = options;
    this.#draws = new FaultDraws(random.fork("faults"), options.only);
    this.#rest = new Rest(clock);
    this.stopped = new Promise((resolve) => {
      this.#stop = resolve;
    });
    this.#faultyCloud = new FaultyCloud({
      clock,
      draws: this.#draws,
      rates: () => this.#cloudRates(),
      onFault: (what) => {
        this.#faults++;
        this.#trace("cloud", "the cloud", what);
      },
      onEffect: (call) => this.watch.asked(call, this.#cluster && worldOf(this.#cluster)),
      onAttached: (call) => {
        if (this.#cluster !== undefined) this.watch.attachAnswered(call, worldOf(this.#cluster));
      },
      onDetached: () => {
        if (this.#cluster !== undefined) this.#look(this.#cluster);
      },
    });
  }

  result(): SimulationResult {
    return {
      seed: this.#options.seed,
      violations: this.watch.violations,
      crashes: this.#crashes,
      faults: this.#faults,
      struck: this.#draws.struck,
      steps: this.#steps,
      acknowledgedWrites: this.#acknowledged,
      elapsedMs: Math.round(this.#clock.monotonicMs()),
      traceHash: this.#traceHash.toString(),
    };
  }

  /** The state of the cluster, for a simulation that did not come to its end. */
  standstill(): string {
    return this.#cluster === undefined ? "no cluster came up" : standstill(this.#cluster).join("; ");
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
      { clock: this.#clock, draws: this.#draws },
      () => this.#callRates(),
      (call, fault) => {
        if (fault !== undefined) this.#faults++;
        if (fault !== undefined) this.#trace("call", call.component, callText(call, fault));
        this.#step(call);
      },
    );
    const gate: CallGate = (call, proceed) =>
      faulty(call, () => {
        const death = this.#deathAt(call);
        return death === undefined ? proceed() : this.#dieAt(call, death, proceed);
      });
    const cluster = await createInProcessCluster(env, {
      config,
      // As a supervisor does: a registrar that the kubelet refuses ends.
      restartsEnded: true,
      programs: (host) => recordPrograms(this.#rest.clock(), host),
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
    await this.#pause();
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

  async #pause(): Promise<void> {
    const { restMs = restMsDefault } = this.#options;
    if (restMs < restMsMin) return this.#clock.sleep(restMs, this.#signal);
    this.#trace("rest", "the cluster", `rests for ${(restMs / 3_600_000).toFixed(1)} hours`);
    await this.#rest.during(restMs, this.#signal);
    this.#trace("rest", "the cluster", "has rested");
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
    this.#trace("crossing", "the administrator", `begins: ${direction}`);
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
                "crossing",
                "the crossing",
                e.kind === "warning"
                  ? `warns of ${e.finding.object}`
                  : [crossingWords[e.kind], e.step, e.nodeName]
                      .filter((word) => word !== undefined)
                      .join(" "),
              ),
          },
          this.#signal,
        );
        return;
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        this.#trace("crossing", "the crossing", `ends with an error: ${why}`);
        if (this.#clock.monotonicMs() > crossingWithinMs) throw error;
        await this.#clock.sleep(2000, this.#signal);
      }
    }
  }

  async #crashAtRandom(cluster: InProcessCluster, until: AbortSignal): Promise<void> {
    const pause = (ms: number, restingMs: number) =>
      this.#rest.sleep(ms, restingMs, until).then(
        () => true,
        () => false,
      );
    for (;;) {
      const draw = this.#draws.next("crash");
      const pauseMs = 20 + draw.below(1500);
      const restingMs = draw.below(restingCrashMs);
      const victims = [...cluster.componentNames, "apiserver"];
      const name = victims[draw.below(victims.length)] ?? "apiserver";
      const downMs = 50 + draw.below(3000);
      if (!(await pause(pauseMs, restingMs))) break;
      const isApiServer = name === "apiserver";
      if (!(isApiServer || cluster.isRunning(name)) || !this.#draws.happens(draw)) continue;
      if (!isApiServer) this.#crash(cluster, name, downMs);
      else {
        this.#crashes++;
        this.#trace("life", "the API server", "restarts");
        cluster.restartApiServer();
      }
    }
    await Promise.all(this.#comeBacks);
  }

  /** Cuts a component off and starts it again later. */
  #crash(cluster: InProcessCluster, name: string, downMs: number): void {
    this.#crashes++;
    this.#trace("life", name, `crashes, and is down for ${downMs} ms`);
    cluster.drop(name);
    for (const endpoint of this.#lives.get(name)?.cut() ?? []) cluster.csi.crash(endpoint);
    this.#comeBacks.push(
      this.#clock.sleep(downMs, this.#signal).then(async () => {
        this.#trace("life", name, "starts again");
        await cluster.start(name);
      }),
    );
  }

  /** Whether the component dies when it asks the cloud for an attach or a detach. */
  #deathAt({ component, seam, method }: SeamCall): Death | undefined {
    const rates = this.#options.crashes === false ? undefined : this.#cloudRates();
    if (rates === undefined || seam !== "cloud" || !["attachDisk", "detachDisk"].includes(method)) return;
    // Each death schedules a start: a second death while it is down would start it twice.
    if (this.#cluster?.isRunning(component) !== true) return;
    const draw = this.#draws.next(`death of ${component}`);
    const isDrawn = draw.below(1000) < rates.deathAtChange;
    const death = { downMs: 50 + draw.below(3000), isAnswered: draw.below(2) !== 0 };
    return isDrawn && this.#draws.happens(draw) ? death : undefined;
  }

  /** Before the call leaves, or while the cloud is at it. */
  async #dieAt<T>({ component }: SeamCall, death: Death, proceed: () => Promise<T>): Promise<T> {
    const answer = death.isAnswered ? proceed() : undefined;
    answer?.catch(() => {});
    if (this.#cluster !== undefined) this.#crash(this.#cluster, component, death.downMs);
    // The life is cut by now: a call that has not left is lost there, and its caller waits for ever.
    return answer ?? proceed();
  }

  #callRates(): FaultRates | undefined {
    if (this.#healed) return undefined;
    return this.#rest.isOn ? restingFaultRates : (this.#options.rates ?? defaultFaultRates);
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
  #step(call: SeamCall): void {
    if (this.#hasStopped) return;
    this.#steps++;
    const cluster = this.#cluster;
    if (cluster === undefined) return;
    if (mayChange(call)) this.#look(cluster);
    if (this.#steps !== this.#options.until) return;
    for (const line of standstill(cluster)) this.#trace("stopped", "at the end:", line);
    // What is under way goes on until its next wait: it belongs to no step any more.
    this.#hasStopped = true;
    this.#stop();
  }

  #look(cluster: InProcessCluster): void {
    const world = worldOf(cluster);
    this.watch.check(world);
    this.#options.timeline?.look(this.#clock.monotonicMs(), world);
    for (const violation of cluster.disks.violations) this.watch.report("C2", violation);
  }

  async #acks(cluster: InProcessCluster, ordinal: number): Promise<ReadonlySet<number>> {
    return acknowledgedRecords(await cluster.podLogs(`writer-${ordinal}`));
  }

  #trace(kind: TraceKind, subject: string, text: string): void {
    if (this.#hasStopped) return;
    const event = { atMs: Math.round(this.#clock.monotonicMs()), step: this.#steps, kind, subject, text };
    this.#traceHash.add(traceLine(event));
    this.#options.timeline?.note(event);
    this.#options.onTrace?.(event);
  }
}

/** What the crossing says of its steps. */
const crossingWords: Readonly<Record<Exclude<CrossingEvent["kind"], "warning">, string>> = {
  stepStarted: "begins:",
  stepDone: "has done:",
  waiting: "waits at:",
};

/** How a component dies at a call. */
interface Death {
  readonly downMs: number;
  /** The call has left when it dies. */
  readonly isAnswered: boolean;
}

function diskText(op: "attach" | "detach", path: string, nodeName: string): string {
  return op === "attach"
    ? `is attached to ${nodeName} by the ${path} code`
    : `is detached from ${nodeName} by the ${path} code`;
}

function callText({ seam, method }: SeamCall, fault: CallFault): string {
  const call = `its call ${seam}.${method}`;
  switch (fault.kind) {
    case "delay":
      return `waits ${fault.ms} ms with ${call}`;
    case "lostRequest":
      return `loses ${call} on the way`;
    case "lostReply":
      return `loses the answer to ${call}, which took effect`;
  }
}
