/** A scene for tests: a cluster of one node on the virtual clock, whose cloud and crashes follow a script. */
import { resources } from "@longshore/kube";
import {
  clusterConfig,
  createInProcessCluster,
  type InProcessCluster,
  recordPrograms,
  writerProgram,
  writerSet,
} from "@longshore/local";
import { type CrossingDirection, crossingSubject, runCrossing } from "@longshore/migration";
import {
  noMeter,
  type Random,
  type RuntimeEnv,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import { migratedPluginsOf } from "@longshore/storage";
import { type AttachmentCall, ContractWatch } from "../contract-watch.ts";
import { type CallGate, Life, type SeamCall } from "../cut.ts";
import { FaultDraws } from "../fault-draws.ts";
import { type CloudFaultRates, FaultyCloud } from "../faulty-cloud.ts";
import { attachmentCalls, worldOf } from "../world.ts";

/** Draws the highest, so that only a rate of 1000 strikes and a time is the longest allowed. */
const highest: Random = { below: (bound) => bound - 1, uuid: () => "", fork: () => highest };
const faultFree: CloudFaultRates = {
  throttledList: 0,
  slowChange: 0,
  lateChange: 0,
  changeMsMax: 1,
  deathAtChange: 0,
};
/** The only node. */
export const node = "node-1";
/** The writer's pod and its events' object. */
export const writer = "writer-0";

/** The cluster, and what is done to it. */
export class Scene {
  readonly signal = never();
  readonly clock: VirtualClock;
  readonly cluster: InProcessCluster;
  readonly watch: ContractWatch;
  /** Attaches and detaches in the order in which they took effect: `in-tree detach`. */
  readonly effects: readonly string[];
  readonly #state: SceneState;

  private constructor(
    clock: VirtualClock,
    cluster: InProcessCluster,
    watch: ContractWatch,
    state: SceneState,
  ) {
    this.clock = clock;
    this.cluster = cluster;
    this.watch = watch;
    this.#state = state;
    this.effects = state.effects;
  }

  /** Plays a scene from the moment in which the writer runs, and ends it. */
  static async play(script: (scene: Scene) => Promise<void>): Promise<void> {
    const clock = new VirtualClock();
    await clock.run(
      (async () => {
        const scene = await Scene.#create(clock);
        await scene.writerRuns();
        await script(scene);
        await scene.cluster.stop();
      })(),
      { limitMs: 4 * 3_600_000 },
    );
  }

  static async #create(clock: VirtualClock): Promise<Scene> {
    const state: SceneState = {
      cloud: faultFree,
      effects: [],
      calls: [],
      lives: new Map(),
      deathAt: undefined,
    };
    const watch = new ContractWatch(({ path, op }) => state.effects.push(`${path} ${op}`));
    const env: RuntimeEnv = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
    const config = clusterConfig(1, "unprivileged");
    let cluster: InProcessCluster | undefined;
    const check = () => {
      if (cluster !== undefined) watch.check(worldOf(cluster));
    };
    const faulty = new FaultyCloud({
      clock,
      draws: new FaultDraws(highest),
      rates: () => state.cloud,
      onFault: (what) => state.calls.push(what),
      onEffect: (call) => watch.asked(call),
      onAttached: (call: AttachmentCall) => cluster && watch.attachAnswered(call, worldOf(cluster)),
    });
    const gate: CallGate = async (call, proceed) => {
      if (state.deathAt?.(call) === true && cluster !== undefined) {
        state.deathAt = undefined;
        crash(cluster, state, call.component);
      }
      try {
        return await proceed();
      } finally {
        check();
      }
    };
    cluster = await createInProcessCluster(env, {
      config,
      programs: (host) => recordPrograms(clock, host),
      isolate: (name, seams) => {
        const life = new Life(name, gate);
        state.lives.set(name, life);
        return life.seams({
          ...seams,
          cloudFor: (caller) => faulty.around(seams.cloudFor(caller), attachmentCalls(config, caller)),
        });
      },
    });
    const command = [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "700"];
    await cluster.kube.create(resources.statefulSets, writerSet({ replicas: 1, command }), {
      signal: never(),
    });
    return new Scene(clock, cluster, watch, state);
  }

  /** From now on the cloud misbehaves like this, at every call. */
  cloud(rates: Partial<CloudFaultRates>): void {
    this.#state.cloud = { ...faultFree, ...rates };
  }

  /** What went wrong at the cloud since the start, in its words. */
  get faults(): readonly string[] {
    return this.#state.calls;
  }

  crash(component: string): void {
    crash(this.cluster, this.#state, component);
  }

  /** The component dies when it makes this call, before the call leaves. */
  deathAt(component: string, method: string): void {
    this.#state.deathAt = (call) => call.component === component && call.method === method;
  }

  /** A crossing in the background; settles as it ends. */
  cross(direction: CrossingDirection, onStep: (step: string) => void = () => {}): Promise<unknown> {
    const { kube, platform } = this.cluster;
    const env = { clock: this.clock, random: new SeededRandom(2), logger: silentLogger, meter: noMeter };
    return runCrossing(
      { ...env, kube, platform, host: new SimulatedHost({ name: `operator-${direction}` }) },
      {
        subject: crossingSubject("aws-ebs"),
        direction,
        journalFile: "/crossing.json",
        onEvent: (event) => (event.kind === "stepStarted" ? onStep(event.step) : undefined),
      },
      never(),
    );
  }

  /** Waits until it holds, looking every 50 ms. */
  async until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const untilMs = this.clock.monotonicMs() + 3_600_000;
    while (!(await holds())) {
      if (this.clock.monotonicMs() > untilMs) throw new Error(`not within an hour: ${what}`);
      await this.clock.sleep(50, never());
    }
  }

  sleep(ms: number): Promise<void> {
    return this.clock.sleep(ms, never());
  }

  /** Waits until the writer has written something new. */
  async writerRuns(): Promise<void> {
    const lines = async () => (await this.cluster.podLogs(writer)).join("").length;
    const before = await lines();
    await this.until("the writer writes", async () => (await lines()) > before);
  }

  async writerEvents(): Promise<readonly string[]> {
    return this.cluster
      .objects(resources.events)
      .filter((event) => event.involvedObject.name === writer)
      .map((event) => event.message ?? "");
  }

  get volumesAttached(): readonly string[] {
    const [object] = this.cluster.objects(resources.nodes);
    return (object?.status?.volumesAttached ?? []).map(({ name }) => name);
  }

  /** Whether the node lists the plugin as migrated. */
  get isMigrated(): boolean {
    const [csiNode] = this.cluster.objects(resources.csiNodes);
    return migratedPluginsOf(csiNode).has("kubernetes.io/aws-ebs");
  }

  async scaleWriter(replicas: number): Promise<void> {
    const body = { spec: { replicas } };
    const ref = { namespace: "default", name: "writer" };
    await this.cluster.kube.patch(resources.statefulSets, ref, { type: "merge", body }, { signal: never() });
  }

  get attachments(): number {
    return worldOf(this.cluster).attachments.length;
  }
}

interface SceneState {
  cloud: CloudFaultRates;
  readonly effects: string[];
  readonly calls: string[];
  readonly lives: Map<string, Life>;
  deathAt: ((call: SeamCall) => boolean) | undefined;
}

function crash(cluster: InProcessCluster, state: SceneState, component: string): void {
  cluster.drop(component);
  for (const endpoint of state.lives.get(component)?.cut() ?? []) cluster.csi.crash(endpoint);
}

function never(): AbortSignal {
  return new AbortController().signal;
}
