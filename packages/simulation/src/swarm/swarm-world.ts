/** The world of one seed: a cluster under faults, what its operators do, and what must have come about at its end. */
import { type KubeObject, resources } from "@longshore/kube";
import { clusterPlugin, type InProcessCluster } from "@longshore/local";
import type { Random, VirtualClock } from "@longshore/runtime";
import { FaultDraws } from "../fault-draws.ts";
import type { SeedOptions } from "../seed-result.ts";
import { standstill } from "../standstill.ts";
import { worldOf } from "../world.ts";
import { ephemeralVolumesLeft } from "./ephemeral-watch.ts";
import { FaultyCluster } from "./faulty-cluster.ts";
import { Reached } from "./reached.ts";
import { RestoreLosses } from "./restore-losses.ts";
import { SwarmOperations } from "./swarm-operations.ts";
import type { SwarmPlan } from "./swarm-plan.ts";
import type { Workload } from "./workloads/workload.ts";
import { workloadsOf } from "./workloads/workloads-of.ts";
import { WorldChecks } from "./world-checks.ts";
import type { WorldResult } from "./world-result.ts";
import { type StoryOptions, WorldStory } from "./world-story.ts";

const calmWithinMs = 30 * 60_000;

/** What there is beside the plan. */
interface SwarmWorldOptions extends Pick<SeedOptions, "only">, StoryOptions {
  /** The CustomResourceDefinitions of snapshots; none: there are no snapshots. */
  readonly snapshotDefinitions?: readonly KubeObject[];
}

/** What a world is asked after it has ended. */
type Outcome = Omit<WorldResult, "seed" | "plan">;

/** The world. */
export class SwarmWorld {
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #plan: SwarmPlan;
  readonly #draws: FaultDraws;
  readonly #story: WorldStory;
  readonly #checks: WorldChecks;
  readonly #faulty: FaultyCluster;
  readonly #reached = new Reached();
  readonly #losses = new RestoreLosses();
  readonly #signal = new AbortController().signal;
  #operations: SwarmOperations | undefined;
  #workloads: readonly Workload[] = [];

  constructor(clock: VirtualClock, random: Random, plan: SwarmPlan, options: SwarmWorldOptions) {
    this.#clock = clock;
    this.#random = random;
    this.#plan = plan;
    this.#draws = new FaultDraws(random.fork("faults"), options.only);
    this.#story = new WorldStory(clock, options);
    this.#checks = new WorldChecks(clock, plan, this.#story);
    this.#faulty = new FaultyCluster({
      clock,
      random,
      plan,
      draws: this.#draws,
      story: this.#story,
      checks: this.#checks,
      reached: this.#reached,
      signal: this.#signal,
      snapshotDefinitions: options.snapshotDefinitions ?? [],
      onDied: (component, downMs) => this.#operations?.comesBack(downMs, component),
    });
  }

  /** Resolves when the step has come after which the run ends. */
  get stopped(): Promise<void> {
    return this.#story.stopped;
  }

  /** Ends the run as one that came to no rest. */
  stuck(why: string): void {
    const { running } = this.#faulty;
    const state = running === undefined ? [] : standstill(running);
    this.#checks.watch.report("C8", [why, ...state].join("; "));
  }

  result(): Outcome {
    const { watch, history } = this.#checks;
    const { counters, steps, traceHash } = this.#story;
    return {
      violations: watch.violations,
      struck: this.#draws.struck,
      counters,
      reach: this.#reached.reach,
      steps,
      acknowledgedWrites: this.#writers().reduce((sum, each) => sum + history.acknowledged(each), 0),
      elapsedMs: Math.round(this.#clock.monotonicMs()),
      traceHash,
    };
  }

  async play(): Promise<void> {
    const cluster = await this.#faulty.start();
    const until = (what: string, holds: () => boolean | Promise<boolean>) => this.#until(what, holds);
    const env = { cluster, plan: this.#plan, signal: this.#signal, until };
    this.#workloads = workloadsOf(env);
    // A disk that pods name themselves is made by its in-tree plugin.
    const isFirst = ({ kind }: Workload) => kind === "inline";
    await this.#create(this.#workloads.filter(isFirst));
    if (this.#plan.beginsMigrated) await this.#migrate(cluster);
    await this.#create(this.#workloads.filter((each) => !isFirst(each)));
    await this.#writersRun("at the start");
    this.#checks.volumesStay(cluster);
    const operations = this.#operators(cluster);
    this.#operations = operations;
    this.#faulty.faults.isHealed = false;
    await operations.play();
    this.#faulty.faults.isHealed = true;
    this.#story.trace("rest", "the faults", "end");
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
    this.#checks.volumesMayGo();
    await this.#expectNothingLeft(cluster);
    await cluster.stop();
  }

  #operators(cluster: InProcessCluster): SwarmOperations {
    const faulty = this.#faulty;
    const { machines } = faulty;
    return new SwarmOperations({
      clock: this.#clock,
      random: this.#random.fork("operations"),
      draws: this.#draws,
      plan: this.#plan,
      cluster,
      crash: (component) => faulty.crash(component),
      losePower: (node) => faulty.losePower(cluster, node),
      reboot: (node) => faulty.reboot(cluster, node),
      moveDriver: (node, driver, directory) => faulty.moveDriver(node, driver, directory),
      pause: (component) => faulty.pause(component),
      isPaused: (component) => faulty.isPaused(component),
      isOut: (zone) => machines.isZoneOut(zone),
      failZone: (zone) => machines.failZone(zone),
      takeAway: (node) => machines.letGo(cluster, node, true),
      machineOf: (node) => machines.of(node),
      isPublished: (diskId, node) => machines.isPublished(diskId, node),
      detach: (diskId, node) => machines.detach(cluster, diskId, node),
      onClaimDeleted: (claim) => this.#checks.claims.deletes(claim),
      mayGo: (disk) => this.#checks.claims.mayGo(disk),
      onRestored: (lost) => {
        this.#losses.add(lost);
        this.#checks.restored(lost);
        this.#story.trace("life", "the API server", "is restored from its backup");
      },
      onOperation: (kind, what) => {
        this.#story.count(kind);
        this.#story.trace("life", "the operators:", what);
      },
    });
  }

  async #create(workloads: readonly Workload[]): Promise<void> {
    for (const { kind, create } of workloads) {
      await create();
      if (kind !== undefined) this.#story.count(kind);
    }
  }

  async #migrate({ platform, config }: InProcessCluster): Promise<void> {
    const gates = Object.fromEntries(this.#plan.plugins.map((plugin) => [clusterPlugin(plugin).gate, true]));
    await platform.setControlPlaneGates(gates, this.#signal);
    for (const { name } of config.nodes) await platform.setNodeGates(name, gates, this.#signal);
  }

  #writers(): readonly string[] {
    return this.#workloads.flatMap(({ writers }) => writers);
  }

  /** Waits until every writer has acknowledged something new. */
  async #writersRun(when: string): Promise<void> {
    const { history } = this.#checks;
    const before = new Map(this.#writers().map((each) => [each, history.acknowledged(each)]));
    for (const [writer, count] of before) {
      await this.#until(`${writer} writes ${when}`, () => history.acknowledged(writer) > count);
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
    if (this.#plan.volumes.includes("csiInline"))
      await this.#until("no volume of a pod is left on a node", async () => {
        return (await ephemeralVolumesLeft(cluster)).length === 0;
      });
    for (const workload of this.#workloads) await workload.remove();
    await this.#until("no volume and no disk is left", () => {
      const disks = this.#losses.othersOf(cluster);
      return cluster.objects(resources.persistentVolumes).length === 0 && disks === 0;
    });
    for (const disk of this.#losses.deletedOf(cluster))
      this.#checks.watch.report("C3", `${disk} was deleted, whose volume a restore has taken`);
  }

  async #until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + calmWithinMs;
    while (!(await holds())) {
      if (this.#clock.monotonicMs() > untilMs)
        throw new Error(`${what}: not within half an hour without faults`);
      await this.#clock.sleep(200, this.#signal);
    }
  }
}
