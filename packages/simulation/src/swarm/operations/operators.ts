/** What the operators of a swarm's world can do, whatever the operation: the ways that operations have in common. */
import { type CSINode, isNotFound, resources, type Stored } from "@longshore/kube";
import { type InProcessCluster, type PluginName, writerSetName } from "@longshore/local";
import { type Random, SimulatedHost, type VirtualClock } from "@longshore/runtime";
import type { MachineTime } from "../../machine-time.ts";
import type { DeletedClaim } from "../claim-watch.ts";
import type { SwarmPlan } from "../swarm-plan.ts";

/** What the operators have. */
export interface OperatorsEnv {
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly plan: SwarmPlan;
  readonly cluster: InProcessCluster;
  /** Cuts a running component off. */
  crash(component: string): void;
  /** The machine loses its power, and all that runs on it ends. */
  losePower(node: string): Promise<void>;
  /** The machine shuts down in order and boots; nothing of the cluster runs on it yet. */
  reboot(node: string): Promise<void>;
  /** From its next start on the node's driver has its socket in this directory. */
  moveDriver(node: string, driver: string, directory: string): void;
  /** Stops a running component, which sees and does nothing more until the returned function lets it go on. */
  pause(component: string): () => void;
  /** Whether a component is stopped so. */
  isPaused(component: string): boolean;
  /** From now on nothing of the zone is answered, until the returned function is called. */
  failZone(zone: string): () => void;
  /** Whether the zone has failed. */
  isOut(zone: string): boolean;
  /** The provider takes a machine that is off away, with its attachments. */
  takeAway(node: string): Promise<void>;
  /** Whether the disk was attached there by a controller, and not by the node itself. */
  isPublished(diskId: string, nodeName: string): boolean;
  /** Detaches a disk by hand. */
  detach(diskId: string, nodeName: string): Promise<void>;
  /** The API server was restored from a backup. */
  onRestored(lost: LostByRestore): void;
  /** A claim in use is about to be deleted. */
  onClaimDeleted(claim: DeletedClaim): void;
  /** A disk that was kept is about to be deleted by hand. */
  mayGo(disk: string): void;
  /** How time passes on the node. */
  machineOf(node: string): MachineTime;
}

/** What a restored API server does not know any more, or knows again. */
export interface LostByRestore {
  /** UIDs of claims that are not there any more. */
  readonly claims: readonly string[];
  /** The disks of their volumes that were in use. */
  readonly disks: readonly string[];
  /** UIDs of the claims, and disks of the volumes, that are there. */
  readonly again: { readonly claims: Iterable<string>; readonly disks: readonly string[] };
  /** UIDs of volumes that are there again, without their disks. */
  readonly returned: readonly string[];
  /** CSINodes that list other plugins as migrated than their nodes do. */
  readonly csiNodes: readonly Stored<CSINode>[];
  /** Names and UIDs, with a slash between, of pods that are there again, without the volumes that were made for them. */
  readonly pods: readonly string[];
}

/** What was drawn for one operation. */
export interface Choice {
  /** The name of its draw, which no other operation of the world has. */
  readonly name: string;
  /** On what: taken modulo how many there are. */
  readonly target: number;
  readonly ms: number;
  readonly isOn: boolean;
  readonly killMs: number;
  /** Says and counts what is done now; false: it is not let happen. */
  happens(what: string): boolean;
}

/** What must come to hold in the end. */
export interface Expectation {
  readonly what: string;
  holds(): boolean | Promise<boolean>;
}

/** Makes one operation, or nothing where the world has nothing for it. */
export type Operation = (operators: Operators, choice: Choice) => Promise<void> | void;

/** The namespace of all that the operators work on. */
export const namespace = "default";

const againAfterMs = 5000;
/** For longer than a machine is paused. */
const triesMax = 180;

/** The operators. */
export class Operators {
  readonly env: OperatorsEnv;
  readonly signal: AbortSignal = new AbortController().signal;
  /** The minor versions of Kubernetes 1 that were set, by place. */
  readonly versions = new Map<string, number>();
  /** Runs the last crossing of a plugin again. */
  readonly crossings = new Map<PluginName, () => void>();
  /** Run the last conversion of each kind again, in the direction in which it went. */
  readonly conversions = new Map<string, () => Promise<void>>();
  /** From where they convert: it has the journals of all conversions. */
  readonly machine = new SimulatedHost({ name: "administrator" });
  /** What comes later, such as a component that comes back. */
  readonly #laters: Promise<void>[] = [];
  /** Gates are changed by one operator at a time. */
  #changes: Promise<void> = Promise.resolve();
  /** Resolves once the control plane may run. */
  #mayRun: Promise<void> = Promise.resolve();
  /** What was decided, and what a restore of the API server takes back. */
  readonly #decisions: (() => Promise<unknown>)[] = [];
  #hasEnded = false;
  /** What was to come later has come: a change may wait for a node that is paused. */
  #isAllBack = false;
  readonly #inTheEnd: Expectation[] = [];

  constructor(env: OperatorsEnv) {
    this.env = env;
  }

  /** What was begun comes to its end, and every component runs. */
  async end(): Promise<void> {
    const { cluster, plan } = this.env;
    this.#hasEnded = true;
    // Those who wait for a node that is gone wait for the controllers, too.
    await this.#startThoseDown((name) => !isOfNode(cluster, name));
    await Promise.all(this.#laters);
    this.#isAllBack = true;
    // What failed as it started: a change may wait for it, such as a crossing for a driver on every node.
    await this.#startThoseDown();
    await this.#changes;
    await this.#startThoseDown();
    for (const { name } of cluster.config.nodes) await this.setSchedulable(name, true);
    await this.scale(plan.replicas);
  }

  /** What operations have said must come to hold once the faults have ended and the writers run. */
  get expectations(): readonly Expectation[] {
    return this.#inTheEnd;
  }

  /** It must come to hold once the faults have ended and the writers run. */
  inTheEnd(what: string, holds: Expectation["holds"]): void {
    this.#inTheEnd.push({ what, holds });
  }

  /** Whether there is a Node of this name: an operator sees no other. */
  hasNode(name: string): boolean {
    return this.env.cluster.objects(resources.nodes).some(({ metadata }) => metadata.name === name);
  }

  /** The name of the node that is meant. */
  nodeAt(target: number): string {
    const { nodes } = this.env.cluster.config;
    return nodes[target % nodes.length]?.name ?? "";
  }

  /** The plugin that is meant. */
  pluginAt(target: number): PluginName | undefined {
    const { plugins } = this.env.plan;
    return plugins[target % plugins.length];
  }

  /** A change after those before it. Operators try until it is done; once the faults have ended, not for ever. */
  change(make: () => Promise<unknown>): void {
    this.#changes = this.#changes.then(() => this.insist(make, () => this.#isAllBack));
    // It is awaited at the end; until then its failure must not end the process.
    this.#changes.catch(() => {});
  }

  /** Tries again and again; once the faults have ended, not for ever. */
  async insist(make: () => Promise<unknown>, isCalm = () => this.#hasEnded): Promise<void> {
    for (let calmTries = 0; ; ) {
      try {
        await make();
        return;
      } catch (error) {
        if (isCalm() && ++calmTries === triesMax) throw error;
        await this.env.clock.sleep(againAfterMs, this.signal);
      }
    }
  }

  /** Does it after this time, beside the other operations, and before the world comes to rest. */
  later(ms: number, make: () => Promise<unknown>): void {
    // With a signal of its own: those who wait at one time are not bounded.
    const done = this.env.clock.sleep(ms, new AbortController().signal).then(() => this.insist(make));
    done.catch(() => {});
    this.#laters.push(done);
  }

  /** What was decided is done once more whenever an older state of the API server is restored. */
  decided(make: () => Promise<unknown>): void {
    this.#decisions.push(make);
  }

  /** Does once more what was decided. */
  async decideAgain(): Promise<void> {
    for (const make of this.#decisions) await this.insist(make);
    for (const cross of this.crossings.values()) cross();
  }

  /** Runs again what they have converted, or carried back: a restore of the API server has it as it was then, or in the middle. */
  async convertAgain(): Promise<void> {
    for (const convert of this.conversions.values()) await this.insist(convert, () => this.#isAllBack);
  }

  /** Kills what acts for the whole cluster, does the work, and starts it again. */
  async withoutControlPlane(work: () => Promise<void>): Promise<void> {
    const names = this.env.cluster.componentNames.filter((name) => !isOfNode(this.env.cluster, name));
    let ends = () => {};
    this.#mayRun = new Promise((resolve) => {
      ends = resolve;
    });
    for (const name of names) this.env.crash(name);
    await work().finally(ends);
    for (const name of names) await this.insist(() => this.start(name));
  }

  /** Starts a component, once it may run. */
  async start(component: string): Promise<void> {
    const { cluster } = this.env;
    if (!isOfNode(cluster, component)) await this.#mayRun;
    await cluster.start(component);
  }

  /** As a supervisor does: what fails as it starts is started again. */
  comesBack(ms: number, ...components: readonly string[]): void {
    this.later(ms, async () => {
      for (const component of components) await this.start(component);
    });
  }

  async deletePod(name: string): Promise<void> {
    const { kube } = this.env.cluster;
    await kube.delete(resources.pods, { namespace, name }, { signal: this.signal }).catch(() => {});
  }

  async scale(replicas: number): Promise<void> {
    const { cluster, plan } = this.env;
    for (const plugin of plan.plugins) {
      const ref = { namespace, name: writerSetName(plugin) };
      const patch = { type: "merge", body: { spec: { replicas } } } as const;
      await cluster.kube.patch(resources.statefulSets, ref, patch, { signal: this.signal });
    }
  }

  async setSchedulable(name: string, isSchedulable: boolean): Promise<void> {
    const body = { spec: { unschedulable: isSchedulable ? null : true } };
    const options = { signal: this.signal };
    const { kube } = this.env.cluster;
    await kube.patch(resources.nodes, { name }, { type: "merge", body }, options).catch((error) => {
      // A Node that was deleted is made again by its agent, schedulable.
      if (!isNotFound(error)) throw error;
    });
  }

  async #startThoseDown(selects: (name: string) => boolean = () => true): Promise<void> {
    const { cluster } = this.env;
    for (const name of cluster.componentNames.filter(selects)) {
      // One that is being restarted may not have ended yet.
      if (!cluster.isRunning(name)) await this.insist(() => this.start(name));
    }
  }
}

function isOfNode({ config }: InProcessCluster, component: string): boolean {
  return config.nodes.some(({ name }) => component === name || component === `csi-node/${name}`);
}
