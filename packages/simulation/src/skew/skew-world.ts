/**
 * A cluster under work whose gates are flipped one after another. After each flip the work goes on: volumes are
 * provisioned, attached, written, moved from node to node and deleted, until all is at rest or nothing moves any more.
 */
import { type Pod, resources, type Stored } from "@longshore/kube";
import { clusterPlugin, type InProcessCluster, initialGates, type PluginName } from "@longshore/local";
import type { GateValues } from "@longshore/migration";
import { VirtualClock } from "@longshore/runtime";
import { migratedPluginsOf } from "@longshore/storage";
import type { ContractWatch } from "../contract-watch.ts";
import { controllerManager, type Flip, flipped, type GatePicture, uniformGates } from "./flip.ts";
import { skewState } from "./skew-state.ts";
import { type Expectation, isSame, type SkewOptions, type Stall } from "./stall.ts";
import { type VolumeUser, VolumeUsers } from "./volume-users.ts";
import { createWatchedCluster, type WatchedCluster } from "./watched-cluster.ts";

const pollMs = 100;
/** How long work may stand still where the design says that it is not served, in virtual milliseconds. */
const refusedMs = 20_000;
/** How long a node may take to follow its gates once nothing of the plugin is on it. */
const changeOverMs = 20_000;
/** How long anything else may take. */
const patienceMs = 15 * 60_000;

/** The cluster with its work. */
export class SkewWorld {
  readonly clock: VirtualClock;
  readonly cluster: InProcessCluster;
  readonly watch: ContractWatch;
  readonly #options: SkewOptions;
  readonly #users: VolumeUsers;
  readonly #watched: WatchedCluster;
  readonly #signal = new AbortController().signal;
  /** The pods that there are, by name. */
  readonly #pods = new Map<string, VolumeUser>();
  /** Where a pod of this name was last. */
  readonly #lastNode = new Map<string, string>();
  #gates: GatePicture;
  #stalls: readonly Stall[] = [];
  #rounds = 0;

  private constructor(
    clock: VirtualClock,
    watched: WatchedCluster,
    users: VolumeUsers,
    options: SkewOptions,
    gates: GatePicture,
  ) {
    this.clock = clock;
    this.cluster = watched.cluster;
    this.watch = watched.watch;
    this.#watched = watched;
    this.#users = users;
    this.#options = options;
    this.#gates = gates;
  }

  /** Plays a story on a new cluster, on which one pod a plugin and node has its volume. */
  static async play<T>(
    options: SkewOptions,
    isOn: boolean,
    story: (world: SkewWorld) => Promise<T>,
  ): Promise<T> {
    const clock = new VirtualClock();
    return clock.run(
      (async () => {
        const world = await SkewWorld.#start(clock, options, isOn);
        try {
          return await story(world);
        } finally {
          await world.cluster.stop();
        }
      })(),
      { limitMs: Number.MAX_SAFE_INTEGER },
    );
  }

  static async #start(clock: VirtualClock, options: SkewOptions, isOn: boolean): Promise<SkewWorld> {
    let watch: ContractWatch | undefined;
    const users = new VolumeUsers(clock, (what) => watch?.report("C3", what));
    const { plugins, nodes, mode } = options;
    const values = plugins.map((name) => [clusterPlugin(name).gate, isOn]);
    const watched = await createWatchedCluster(clock, {
      plugins,
      nodes,
      nodeDecides: mode === "node-only",
      gates: { ...initialGates, ...Object.fromEntries(values) },
      programs: (host) => users.programs(host),
    });
    watch = watched.watch;
    const world = new SkewWorld(clock, watched, users, options, uniformGates(nodes, plugins, isOn));
    for (const mover of world.#movers()) {
      await users.createClaim(world.cluster, mover.plugin, mover.claim);
      await world.#createPod(mover);
    }
    await world.#rest(world.#podsRun());
    return world;
  }

  get gates(): GatePicture {
    return this.#gates;
  }

  /** What does not go on at the moment. */
  get stalls(): readonly Stall[] {
    return this.#stalls;
  }

  /** Everything that makes a difference, under names that are the same for all histories. */
  state(): string {
    return skewState(this.#watched, this.#gates, [...this.#pods.values()]);
  }

  /** One flip, and the work after it. */
  async step(flip: Flip): Promise<void> {
    const { component, plugin, isOn, isDrained } = flip;
    await this.setGates(component, { [clusterPlugin(plugin).gate]: isOn }, isDrained);
  }

  /** Sets gates of a component, which is restarted, a node's kubelet after a drain if it is asked for; and the work after it. */
  async setGates(component: string, values: GateValues, isDrained: boolean): Promise<void> {
    this.#stalls = [];
    const { platform } = this.cluster;
    if (component === controllerManager) {
      await platform.setControlPlaneGates(values, this.#signal);
    } else {
      if (isDrained) await this.#drain(component);
      await platform.setNodeGates(component, values, this.#signal);
      if (isDrained) await this.#setSchedulable(component, true);
    }
    for (const plugin of this.#options.plugins) {
      const isOn = values[clusterPlugin(plugin).gate];
      if (isOn !== undefined) this.#gates = flipped(this.#gates, { component, plugin, isOn });
    }
    await this.#users.writeAll();
    await this.#round();
    this.#watched.check();
  }

  /** Looks at the world at once, between the calls after which it is looked at anyway. */
  check(): void {
    this.#watched.check();
  }

  /** Ends all work; then nothing may be left. */
  async end(): Promise<void> {
    const pods = [...this.#pods.values()];
    for (const { name } of pods) await this.#deletePod(name);
    await this.#rest(pods.flatMap((pod) => this.#leaves(pod)));
    const { objects } = this.cluster;
    const left = objects(resources.volumeAttachments).map(({ metadata }) => metadata.name);
    if (left.length > 0) this.watch.report("C4", `VolumeAttachments are left: ${left.join(", ")}`);
    const bound = objects(resources.persistentVolumes).length;
    const disks = this.cluster.cloud.disks().length;
    if (bound !== disks) this.watch.report("C4", `${disks} disks are left for ${bound} volumes`);
  }

  /**
   * New volumes come to nodes that may not have changed over yet, and go again; the others move on to the next node
   * while they are gone.
   */
  async #round(): Promise<void> {
    const { plugins, nodes } = this.#options;
    const round = ++this.#rounds;
    const fresh = plugins.map((plugin, index) => {
      const name = `${plugin}-new-${round}`;
      return { name, plugin, claim: name, node: `node-${1 + (index % nodes)}` };
    });
    for (const user of fresh) {
      await this.#users.createClaim(this.cluster, user.plugin, user.claim);
      await this.#createPod(user);
    }
    await this.#rest(this.#podsRun());
    const all = [...this.#pods.values()];
    for (const { name } of all) await this.#deletePod(name);
    for (const { claim } of fresh) await this.#users.deleteClaim(this.cluster, claim);
    await this.#rest([
      ...all.flatMap((pod) => this.#leaves(pod)),
      ...fresh.map((user) => this.#isDeleted(user)),
    ]);
    await this.#nodesFollow();
    for (const mover of this.#movers()) await this.#createPod(mover);
    await this.#rest(this.#podsRun());
  }

  /** The pods that are there all the time, each on the node after the one that it was on, also where a drain has removed it. */
  #movers(): readonly VolumeUser[] {
    const { nodes, plugins } = this.#options;
    return plugins.flatMap((plugin) =>
      Array.from({ length: nodes }, (_, index) => {
        const name = `${plugin}-${index + 1}`;
        const last = Number(this.#lastNode.get(name)?.slice("node-".length) ?? index);
        return { name, plugin, claim: name, node: `node-${1 + (last % nodes)}` };
      }),
    );
  }

  async #createPod(user: VolumeUser): Promise<void> {
    this.#pods.set(user.name, user);
    this.#lastNode.set(user.name, user.node);
    await this.#users.createPod(this.cluster, user);
  }

  async #deletePod(name: string): Promise<void> {
    this.#pods.delete(name);
    await this.#users.deletePod(this.cluster, name);
  }

  async #drain(node: string): Promise<void> {
    await this.#setSchedulable(node, false);
    const pods = [...this.#pods.values()].filter((pod) => pod.node === node);
    for (const { name } of pods) await this.#deletePod(name);
    await this.#rest(pods.flatMap((pod) => this.#leaves(pod)));
  }

  async #setSchedulable(name: string, isSchedulable: boolean): Promise<void> {
    const body = { spec: { unschedulable: isSchedulable ? null : true } };
    const options = { signal: this.#signal };
    await this.cluster.kube.patch(resources.nodes, { name }, { type: "merge", body }, options);
  }

  #podsRun(): readonly Expectation[] {
    return [...this.#pods.values()].map(({ name, plugin, node }) => ({
      plugin,
      node,
      what: "pod does not start",
      pod: name,
      holds: () => this.#pod(name)?.status?.phase === "Running",
    }));
  }

  #leaves({ name, plugin, node, claim }: VolumeUser): readonly Expectation[] {
    const volume = this.#volumeOf(claim);
    return [
      { plugin, node, what: "pod does not end", pod: name, holds: () => this.#pod(name) === undefined },
      { plugin, node, what: "volume stays attached", holds: () => !this.#watched.isInUse(volume, node) },
    ];
  }

  #isDeleted({ plugin, node, claim }: VolumeUser): Expectation {
    const volume = this.#volumeOf(claim);
    const holds = () => volume === undefined || !this.#watched.exists(volume);
    return { plugin, node, what: "volume stays", holds };
  }

  #volumeOf(claim: string): string | undefined {
    return this.cluster.objects(resources.persistentVolumes).find((pv) => pv.spec?.claimRef?.name === claim)
      ?.metadata.name;
  }

  #pod(name: string): Stored<Pod> | undefined {
    return this.cluster.objects(resources.pods).find((pod) => pod.metadata.name === name);
  }

  /** Waits until all that is expected holds; what stands still where nothing serves it is a stall, all else breaks C8. */
  async #rest(expected: readonly Expectation[]): Promise<void> {
    const startMs = this.clock.monotonicMs();
    let open = expected.filter((each) => !each.holds());
    while (open.length > 0) {
      const waitedMs = this.clock.monotonicMs() - startMs;
      if (waitedMs > patienceMs || (waitedMs > refusedMs && open.every((each) => this.#isRefused(each))))
        break;
      await this.clock.sleep(pollMs, this.#signal);
      open = open.filter((each) => !each.holds());
    }
    for (const missing of open) {
      const stall = this.#stallOf(missing);
      if (!this.#isRefused(missing)) {
        this.watch.report("C8", `${stall.plugin} on ${stall.node}: ${stall.what}: ${stall.warning ?? ""}`);
      }
      if (!this.#stalls.some((known) => isSame(known, stall))) this.#stalls = [...this.#stalls, stall];
    }
  }

  /** The fourth row of the design's table: the kubelet asks for CSI and the controller is not to use it. */
  #isRefused({ plugin, node }: Pick<Expectation, "plugin" | "node">): boolean {
    if (this.#options.mode === "node-only") return false;
    const csiNode = this.cluster.objects(resources.csiNodes).find(({ metadata }) => metadata.name === node);
    const isStated = migratedPluginsOf(csiNode).has(clusterPlugin(plugin).inTreeName);
    return isStated && !this.#isOn(controllerManager, plugin);
  }

  #stallOf({ plugin, node, what, pod }: Expectation): Stall {
    // A pod of the same name was on the other node before.
    const uid = pod === undefined ? undefined : this.#pod(pod)?.metadata.uid;
    const warning = this.cluster
      .objects(resources.events)
      .filter(({ reason, involvedObject }) => reason === "FailedAttachVolume" && involvedObject.uid === uid)
      .sort((a, b) => ((a.lastTimestamp ?? "") < (b.lastTimestamp ?? "") ? -1 : 1))
      .at(-1)?.message;
    return {
      plugin,
      node,
      what,
      controllerManager: this.#isOn(controllerManager, plugin) ? "on" : "off",
      kubelet: this.#isOn(node, plugin) ? "on" : "off",
      ...(warning === undefined ? {} : { warning }),
    };
  }

  #isOn(component: string, plugin: PluginName): boolean {
    return this.#gates.get(component)?.has(plugin) === true;
  }

  /** Lets each node change over to what its gates say, as far as it can. */
  async #nodesFollow(): Promise<void> {
    const untilMs = this.clock.monotonicMs() + changeOverMs;
    const follows = () =>
      this.cluster.objects(resources.csiNodes).every((csiNode) => {
        const migrated = migratedPluginsOf(csiNode);
        return this.#options.plugins.every(
          (plugin) =>
            migrated.has(clusterPlugin(plugin).inTreeName) ===
            this.#isOn(csiNode.metadata.name ?? "", plugin),
        );
      });
    while (!follows() && this.clock.monotonicMs() < untilMs) await this.clock.sleep(pollMs, this.#signal);
    if (!follows() && this.#stalls.length === 0) {
      this.watch.report("C8", "a node with nothing on it does not change over to its gates");
    }
  }
}
