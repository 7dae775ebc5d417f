/** The world of one seed: its cluster under faults, what its operators do, and what must hold at its end. */
import { type KubeObject, resources } from "@longshore/kube";
import {
  clusterConfig,
  clusterPlugin,
  createInProcessCluster,
  type InProcessCluster,
} from "@longshore/local";
import {
  type Clock,
  type Random,
  type RuntimeEnv,
  silentLogger,
  type VirtualClock,
} from "@longshore/runtime";
import type { CloudCaller } from "@longshore/volumes";
import { ContractWatch, type WorldView } from "../contract-watch.ts";
import { type CallGate, Life, mayChange, type SeamCall } from "../cut.ts";
import { FaultDraws } from "../fault-draws.ts";
import { faultyGate } from "../faults.ts";
import { FaultyCloud } from "../faulty-cloud.ts";
import { MachineTime } from "../machine-time.ts";
import type { SeedOptions } from "../seed-result.ts";
import { standstill } from "../standstill.ts";
import { TraceHash, type TraceKind, traceLine } from "../trace.ts";
import { attachmentCalls, worldOf } from "../world.ts";
import { countedClient } from "./counted-client.ts";
import { type DeathsEnv, deathGate } from "./deaths.ts";
import { EphemeralWatch, ephemeralVolumesLeft } from "./ephemeral-watch.ts";
import { OpenDevices } from "./open-devices.ts";
import { leaderOf } from "./operations/leaders.ts";
import { Reached } from "./reached.ts";
import { RecordHistory } from "./record-history.ts";
import { RequestWatch } from "./request-watch.ts";
import { SizeWatch } from "./size-watch.ts";
import { swarmGate, withFaultyWatches } from "./swarm-faults.ts";
import { SwarmOperations } from "./swarm-operations.ts";
import type { FaultKind, SwarmKind, SwarmPlan } from "./swarm-plan.ts";
import { swarmPrograms } from "./swarm-writer.ts";
import type { Workload } from "./workloads/workload.ts";
import { workloadsOf } from "./workloads/workloads-of.ts";
import type { WorldResult } from "./world-result.ts";
import { zonalCloud } from "./zonal-cloud.ts";

const calmWithinMs = 30 * 60_000;
/** No component needs as many requests for an object in a minute, whatever goes wrong. */
const requestsMax = 600;

/** What of the cloud's calls changes something. */
const changesDisks: ReadonlySet<string> = new Set(["attachDisk", "detachDisk", "createDisk", "deleteDisk"]);
const skewMsMax = 10 * 60_000;

/** What there is beside the plan. */
interface SwarmWorldOptions extends Pick<SeedOptions, "only" | "onTrace"> {
  /** The run ends after this step. */
  readonly until?: number;
  /** The CustomResourceDefinitions of snapshots; none: there are no snapshots. */
  readonly snapshotDefinitions?: readonly KubeObject[];
}

/** What a world is asked after it has ended. */
type Outcome = Omit<WorldResult, "seed" | "plan">;

/** The world. */
export class SwarmWorld {
  /** Resolves when the step has come after which the run ends. */
  readonly stopped: Promise<void>;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #plan: SwarmPlan;
  readonly #draws: FaultDraws;
  readonly #watch: ContractWatch;
  readonly #history: RecordHistory;
  readonly #devices = new OpenDevices();
  /** By the names of nodes. */
  readonly #machines = new Map<string, MachineTime>();
  readonly #requests: RequestWatch;
  readonly #sizes: SizeWatch;
  readonly #ephemeral: EphemeralWatch;
  readonly #lives = new Map<string, Life>();
  readonly #powers = new Map<string, () => void>();
  readonly #counters: Partial<Record<SwarmKind, number>> = {};
  readonly #zonesOut = new Set<string>();
  readonly #reached = new Reached();
  readonly #hash = new TraceHash();
  readonly #options: SwarmWorldOptions;
  readonly #signal = new AbortController().signal;
  #stop: () => void = () => {};
  #hasStopped = false;
  #cluster: InProcessCluster | undefined;
  #operations: SwarmOperations | undefined;
  #workloads: readonly Workload[] = [];
  #isHealed = true; // No faults while the cluster comes up.
  #steps = 0;

  constructor(clock: VirtualClock, random: Random, plan: SwarmPlan, options: SwarmWorldOptions) {
    this.#clock = clock;
    this.#random = random;
    this.#plan = plan;
    this.#options = options;
    this.stopped = new Promise((resolve) => {
      this.#stop = resolve;
    });
    this.#draws = new FaultDraws(random.fork("faults"), options.only);
    this.#watch = new ContractWatch(
      ({ op, path, diskId, nodeName }) => this.#trace("disk", diskId, `${path} ${op} ${nodeName}`),
      (violation) => this.#trace("broken", "the contract is broken:", violation),
    );
    this.#history = new RecordHistory((what) => this.#watch.report("C3", what));
    this.#sizes = new SizeWatch((what) => this.#watch.report("C3", what));
    this.#ephemeral = new EphemeralWatch((what) => this.#watch.report("C3", what));
    this.#requests = new RequestWatch(requestsMax, (what) => this.#watch.report("C8", what));
  }

  /** Ends the run as one that came to no rest. */
  stuck(why: string): void {
    const state = this.#cluster === undefined ? [] : standstill(this.#cluster);
    this.#watch.report("C8", [why, ...state].join("; "));
  }

  result(): Outcome {
    return {
      violations: this.#watch.violations,
      struck: this.#draws.struck,
      counters: this.#counters,
      reach: this.#reached.reach,
      steps: this.#steps,
      acknowledgedWrites: this.#writers().reduce((sum, each) => sum + this.#history.acknowledged(each), 0),
      elapsedMs: Math.round(this.#clock.monotonicMs()),
      traceHash: this.#hash.toString(),
    };
  }

  async play(): Promise<void> {
    const cluster = await this.#start();
    const until = (what: string, holds: () => boolean | Promise<boolean>) => this.#until(what, holds);
    const env = { cluster, plan: this.#plan, signal: this.#signal, until };
    this.#workloads = workloadsOf(env);
    // A disk that pods name themselves is made by its in-tree plugin.
    const isFirst = ({ kind }: Workload) => kind === "inline";
    await this.#create(this.#workloads.filter(isFirst));
    if (this.#plan.beginsMigrated) await this.#migrate(cluster);
    await this.#create(this.#workloads.filter((each) => !isFirst(each)));
    await this.#writersRun("at the start");
    const operations = new SwarmOperations({
      clock: this.#clock,
      random: this.#random.fork("operations"),
      draws: this.#draws,
      plan: this.#plan,
      cluster,
      crash: (component) => this.#crash(cluster, component),
      losePower: (node) => this.#losePower(cluster, node),
      pause: (component) => {
        const life = this.#lives.get(component);
        life?.pause();
        return () => life?.goOn();
      },
      isOut: (zone) => this.#zonesOut.has(zone),
      failZone: (zone) => {
        this.#zonesOut.add(zone);
        return () => this.#zonesOut.delete(zone);
      },
      takeAway: (node) => this.#letGo(cluster, node, true),
      machineOf: (node) => this.#machineOf(node),
      onOperation: (kind, what) => {
        this.#count(kind);
        this.#trace("life", "the operators:", what);
      },
    });
    this.#operations = operations;
    this.#isHealed = false;
    await operations.play();
    this.#isHealed = true;
    this.#trace("rest", "the faults", "end");
    await operations.end();
    await this.#writersRun("once the faults have ended");
    for (const { what, holds } of operations.expectations) await this.#until(what, () => holds());
    await this.#until("every node is ready", () =>
      cluster
        .objects(resources.nodes)
        .every(({ status }) =>
          status?.conditions?.some((each) => each.type === "Ready" && each.status === "True"),
        ),
    );
    await this.#expectNothingLeft(cluster);
    await cluster.stop();
  }

  async #create(workloads: readonly Workload[]): Promise<void> {
    for (const { kind, create } of workloads) {
      await create();
      if (kind !== undefined) this.#count(kind);
    }
  }

  async #start(): Promise<InProcessCluster> {
    const { nodes, zones, plugins, nodeDecides } = this.#plan;
    const spread = clusterConfig(nodes, "unprivileged", {
      plugins,
      ...(nodeDecides ? { nodeDecidesMigration: true } : {}),
    });
    const nodesIn = spread.nodes.map((node, at) => ({ ...node, zone: spread.nodes[at % zones]?.zone ?? "" }));
    const config = { ...spread, nodes: nodesIn };
    const faults: DeathsEnv & { readonly clock: Clock } = {
      clock: this.#clock,
      draws: this.#draws,
      rate: (kind) => this.#rate(kind),
      onFault: (kind, component, call) => this.#fault(kind, component, call),
      isRunning: (component) => this.#cluster?.isRunning(component) === true,
      die: (component, downMs) => {
        if (this.#cluster !== undefined) this.#crash(this.#cluster, component);
        this.#operations?.comesBack(downMs, component);
      },
    };
    const gate = this.#gate(faults);
    const cloud = this.#faultyCloud();
    const env: RuntimeEnv = {
      clock: this.#clock,
      random: this.#random.fork("cluster"),
      logger: silentLogger,
      meter: this.#reached.meter(),
    };
    const cluster = await createInProcessCluster(env, {
      config,
      restartsEnded: true,
      standby: this.#plan.operations.includes("leaderPaused"),
      snapshotDefinitions: this.#options.snapshotDefinitions ?? [],
      programs: (host) => {
        const clock = this.#machineOf(host.name).clock(this.#clock);
        return swarmPrograms({ clock, history: this.#history, devices: this.#devices }, host);
      },
      isolate: (name, seams) => {
        const { runtime } = seams;
        if ("losePower" in runtime) this.#powers.set(name, runtime.losePower as () => void);
        const node = config.nodes.find((each) => [each.name, `csi-node/${each.name}`].includes(name));
        const life = new Life(name, gate, node && this.#machineOf(node.name));
        this.#lives.set(name, life);
        return life.seams({
          ...seams,
          kube: countedClient(withFaultyWatches(faults, name, seams.kube), (verb, object) =>
            this.#requests.asked(name, verb, object, this.#clock.monotonicMs()),
          ),
          cloudFor: (caller: CloudCaller) => {
            const provider = seams.cloudFor(caller);
            const fromHere =
              node === undefined ? provider : this.#machineOf(node.name).whilePowered(provider);
            return zonalCloud(cloud.around(fromHere, attachmentCalls(config, caller)), (of) =>
              this.#isOut(of),
            );
          },
        });
      },
    });
    this.#cluster = cluster;
    return cluster;
  }

  async #migrate({ platform, config }: InProcessCluster): Promise<void> {
    const gates = Object.fromEntries(this.#plan.plugins.map((plugin) => [clusterPlugin(plugin).gate, true]));
    await platform.setControlPlaneGates(gates, this.#signal);
    for (const { name } of config.nodes) await platform.setNodeGates(name, gates, this.#signal);
  }

  #gate(faults: DeathsEnv): CallGate {
    const special = swarmGate(faults);
    const deadly = deathGate(faults);
    const common = faultyGate(
      { clock: this.#clock, draws: this.#draws },
      () =>
        this.#isHealed
          ? undefined
          : {
              lostRequest: this.#rate("lostRequest"),
              lostReply: this.#rate("lostReply"),
              delay: this.#rate("delay"),
              delayMsMax: 2000,
            },
      (call, fault) => {
        if (fault !== undefined) this.#fault(fault.kind, call.component, `${call.seam}.${call.method}`);
        this.#step(call);
      },
    );
    return (call, proceed) => {
      this.#reached.called(call);
      this.#onlyLeaderChanges(call);
      return common(call, () => special(call, () => deadly(call, proceed)));
    };
  }

  /** A controller manager that does not lead asks nothing of the cloud: its successor may have attached what it would detach. */
  #onlyLeaderChanges({ component, seam, method }: SeamCall): void {
    if (seam !== "cloud" || !component.startsWith("controller-manager")) return;
    if (this.#cluster === undefined || !changesDisks.has(method)) return;
    const leader = leaderOf(this.#cluster);
    if (leader === component) return;
    this.#watch.report("C2", `${component} asks for ${method}, although ${leader ?? "no other"} leads`);
  }

  #faultyCloud(): FaultyCloud {
    return new FaultyCloud({
      clock: this.#clock,
      draws: this.#draws,
      rates: () =>
        this.#isHealed
          ? undefined
          : {
              throttledList: this.#rate("cloudThrottled") * 4,
              slowChange: this.#rate("cloudSlow"),
              lateChange: this.#rate("cloudLate"),
              changeMsMax: 30_000,
              deathAtChange: 0,
            },
      onFault: (what) => {
        const late = what.startsWith("answers") ? "cloudLate" : "cloudSlow";
        this.#fault(what.startsWith("throttles") ? "cloudThrottled" : late, "the cloud", what);
      },
      onEffect: (call) => this.#watch.asked(call, this.#cluster && this.#view(this.#cluster)),
      onAttached: (call) => {
        if (this.#cluster !== undefined) this.#watch.attachAnswered(call, this.#view(this.#cluster));
      },
      onDetached: () => this.#look(),
    });
  }

  #rate(kind: FaultKind): number {
    return this.#isHealed ? 0 : (this.#plan.faults[kind] ?? 0);
  }

  #fault(kind: FaultKind, subject: string, what: string): void {
    this.#count(kind);
    this.#trace("call", subject, `${kind} ${what}`);
  }

  #count(kind: SwarmKind): void {
    this.#counters[kind] = (this.#counters[kind] ?? 0) + 1;
  }

  #crash(cluster: InProcessCluster, component: string): void {
    cluster.drop(component);
    const life = this.#lives.get(component);
    this.#reached.crashed(component, life?.underWay ?? []);
    for (const endpoint of life?.cut() ?? []) cluster.csi.crash(endpoint);
  }

  /** Whether a disk, a machine or a zone of this name is in a zone that has failed. */
  #isOut(name: string): boolean {
    if (this.#zonesOut.size === 0 || this.#cluster === undefined) return false;
    const { cloud, config } = this.#cluster;
    const zone =
      config.nodes.find(({ instanceId }) => instanceId === name)?.zone ??
      cloud.disks().find(({ id }) => id === name)?.zone;
    return this.#zonesOut.has(zone ?? name);
  }

  #machineOf(node: string): MachineTime {
    const known = this.#machines.get(node);
    if (known !== undefined) return known;
    const machine = new MachineTime();
    // Where clocks jump, none is right from the beginning.
    const isWrong = this.#plan.operations.includes("clockJump");
    const random = this.#random.fork(`clock of ${node}`);
    if (isWrong) machine.skewMs = random.below(2 * skewMsMax, "skew") - skewMsMax;
    this.#machines.set(node, machine);
    return machine;
  }

  async #losePower(cluster: InProcessCluster, node: string): Promise<void> {
    // Also what is starting or stopping there.
    for (const component of [node, `csi-node/${node}`]) this.#crash(cluster, component);
    this.#powers.get(node)?.();
    cluster.hostOf(node).losePower();
    this.#machineOf(node).boots++;
    await this.#letGo(cluster, node, false);
  }

  #writers(): readonly string[] {
    return this.#workloads.flatMap(({ writers }) => writers);
  }

  /** Waits until every writer has acknowledged something new. */
  async #writersRun(when: string): Promise<void> {
    const before = new Map(this.#writers().map((each) => [each, this.#history.acknowledged(each)]));
    for (const [writer, count] of before) {
      await this.#until(`${writer} writes ${when}`, () => this.#history.acknowledged(writer) > count);
    }
  }

  /** Ends all work and removes every volume; then nothing is attached and no disk is left. */
  async #expectNothingLeft(cluster: InProcessCluster): Promise<void> {
    for (const workload of this.#workloads) await workload.end();
    await this.#until("the writers end", () => cluster.objects(resources.pods).length === 0);
    await this.#until("nothing is attached", () => {
      const { attachments } = worldOf(cluster);
      return cluster.objects(resources.volumeAttachments).length === 0 && attachments.length === 0;
    });
    if (this.#plan.volumes.includes("csiInline")) {
      await this.#until("no volume of a pod is left on a node", async () => {
        return (await ephemeralVolumesLeft(cluster)).length === 0;
      });
    }
    for (const workload of this.#workloads) await workload.remove();
    await this.#until("no volume and no disk is left", () => {
      const disks = cluster.cloud.disks().length;
      return cluster.objects(resources.persistentVolumes).length === 0 && disks === 0;
    });
  }

  /** What the node attached by itself goes with its machine; all of it, where the provider has taken that away. */
  async #letGo({ cloud, config }: InProcessCluster, nodeName: string, isTakenAway: boolean): Promise<void> {
    const instanceId = config.nodes.find(({ name }) => name === nodeName)?.instanceId ?? "";
    const plugins = this.#plan.plugins.map(clusterPlugin).filter(({ isShared }) => !isShared);
    for (const { name: provider, controllerPublishes } of plugins) {
      if (controllerPublishes && !isTakenAway) continue;
      const caller = cloud.forCaller({ path: "in-tree", component: "power", provider });
      for (const { id, attachments } of await caller.listDisks(this.#signal)) {
        if (!attachments.some((each) => each.instanceId === instanceId)) continue;
        const { path, plugin } = this.#watch.attacherOf(id, nodeName) ?? { path: "in-tree", plugin: "" };
        this.#watch.asked({ op: "detach", path, plugin, diskId: id, nodeName });
        await caller.detachDisk(id, instanceId, this.#signal);
      }
    }
  }

  async #until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + calmWithinMs;
    while (!(await holds())) {
      if (this.#clock.monotonicMs() > untilMs)
        throw new Error(`${what}: not within half an hour without faults`);
      await this.#clock.sleep(200, this.#signal);
    }
  }

  /** Every call at a seam is a step: whatever it changed, the contract must hold after it. */
  #step(call: SeamCall): void {
    if (this.#hasStopped) return;
    this.#steps++;
    if (mayChange(call)) this.#look();
    if (this.#steps !== this.#options.until) return;
    for (const line of this.#cluster === undefined ? [] : standstill(this.#cluster)) {
      this.#trace("stopped", "at the end:", line);
    }
    // What is under way goes on until its next wait: it belongs to no step any more.
    this.#hasStopped = true;
    this.#stop();
  }

  #look(): void {
    const cluster = this.#cluster;
    if (cluster === undefined) return;
    this.#watch.check(this.#view(cluster));
    if (this.#plan.operations.includes("claimGrown")) this.#sizes.check(cluster);
    for (const violation of cluster.disks.violations) this.#watch.report("C2", violation);
  }

  /** A device that a program has open is looked at as a mount. */
  #view(cluster: InProcessCluster): WorldView {
    const world = worldOf(cluster);
    const ofDisks = this.#plan.volumes.includes("csiInline")
      ? this.#ephemeral.check(world.mounts)
      : world.mounts;
    const mounts = [...ofDisks].map(
      ([node, mounted]) => [node, [...mounted, ...this.#devices.of(node)]] as const,
    );
    return { ...world, mounts: new Map(mounts) };
  }

  #trace(kind: TraceKind, subject: string, text: string): void {
    if (this.#hasStopped) return;
    const event = { atMs: Math.round(this.#clock.monotonicMs()), step: this.#steps, kind, subject, text };
    this.#hash.add(traceLine(event));
    this.#options.onTrace?.(event);
  }
}
