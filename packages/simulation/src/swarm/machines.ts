/** The machines of a world: their clocks, their power, and the zones that they are in. */
import { clusterPlugin, type InProcessCluster, type PodRuntime } from "@longshore/local";
import type { Random, SimulatedHost } from "@longshore/runtime";
import { MachineTime } from "../machine-time.ts";
import { flexProvider } from "./flex-driver.ts";
import type { SwarmPlan } from "./swarm-plan.ts";
import type { WorldChecks } from "./world-checks.ts";

const skewMsMax = 10 * 60_000;
/** How long containers may take to end before the machine does. */
const graceMs = 10_000;

/** What they need. */
export interface MachinesEnv {
  readonly random: Random;
  readonly plan: SwarmPlan;
  readonly checks: WorldChecks;
  readonly signal: AbortSignal;
}

/** The containers of a machine. */
export interface Containers extends Pick<PodRuntime, "list" | "terminate"> {
  /** Each is dropped where it is. */
  losePower(): void;
}

/** All of one world, by the names of nodes. */
export class Machines {
  readonly #env: MachinesEnv;
  readonly #times = new Map<string, MachineTime>();
  readonly #containers = new Map<string, Containers>();
  readonly #zonesOut = new Set<string>();

  constructor(env: MachinesEnv) {
    this.#env = env;
  }

  of(node: string): MachineTime {
    const known = this.#times.get(node);
    if (known !== undefined) return known;
    const machine = new MachineTime();
    // Where clocks jump, none is right from the beginning.
    const isWrong = this.#env.plan.operations.includes("clockJump");
    const random = this.#env.random.fork(`clock of ${node}`);
    if (isWrong) machine.skewMs = random.below(2 * skewMsMax, "skew") - skewMsMax;
    this.#times.set(node, machine);
    return machine;
  }

  /** These are the containers of this node. */
  runs(node: string, containers: Containers): void {
    this.#containers.set(node, containers);
  }

  /** The containers of the node get their signal, and end in order. */
  async endContainers(node: string): Promise<void> {
    const { signal } = this.#env;
    const containers = this.#containers.get(node);
    for (const podUID of (await containers?.list(signal)) ?? [])
      await containers?.terminate(podUID, graceMs, signal);
  }

  /** The machine loses its power: what was not synced is lost, and what it attached by itself is gone. */
  losePower(cluster: InProcessCluster, node: string): Promise<void> {
    return this.#boot(cluster, node, (host) => host.losePower());
  }

  /** It starts again in order: what it attached by itself is gone, too. */
  reboot(cluster: InProcessCluster, node: string): Promise<void> {
    return this.#boot(cluster, node, (host) => host.reboot());
  }

  async #boot(cluster: InProcessCluster, node: string, boot: (host: SimulatedHost) => void): Promise<void> {
    this.#containers.get(node)?.losePower();
    boot(cluster.hostOf(node));
    this.of(node).boots++;
    await this.letGo(cluster, node, false);
  }

  /** What the node attached by itself goes with its machine; all of it, where the provider has taken that away. */
  async letGo({ cloud, config }: InProcessCluster, nodeName: string, isTakenAway: boolean): Promise<void> {
    const { plan, checks, signal } = this.#env;
    const instanceId = config.nodes.find(({ name }) => name === nodeName)?.instanceId ?? "";
    for (const { name: provider, controllerPublishes } of disksPlugins(plan)) {
      if (controllerPublishes && !isTakenAway) continue;
      const caller = cloud.forCaller({ path: "in-tree", component: "power", provider });
      for (const { id, attachments } of await caller.listDisks(signal)) {
        if (!attachments.some((each) => each.instanceId === instanceId)) continue;
        checks.detachedByHand(id, nodeName);
        await caller.detachDisk(id, instanceId, signal);
      }
    }
  }

  /** Whether the disk was attached there by a controller, and not by the node itself. */
  isPublished(diskId: string, nodeName: string): boolean {
    const { plan, checks } = this.#env;
    const by = checks.watch.attacherOf(diskId, nodeName)?.plugin;
    const plugin = plan.plugins.map(clusterPlugin).find(({ inTreeName }) => inTreeName === by);
    return plugin?.controllerPublishes !== false;
  }

  /** The operators detach a disk by hand. */
  async detach(cluster: InProcessCluster, diskId: string, nodeName: string): Promise<void> {
    const { plan, checks, signal } = this.#env;
    const instanceId = cluster.config.nodes.find(({ name }) => name === nodeName)?.instanceId ?? "";
    for (const { name: provider } of disksPlugins(plan)) {
      const caller = cluster.cloud.forCaller({ path: "in-tree", component: "operators", provider });
      if (!(await caller.listDisks(signal)).some(({ id }) => id === diskId)) continue;
      checks.detachedByHand(diskId, nodeName, cluster);
      await caller.detachDisk(diskId, instanceId, signal);
    }
  }

  /** Nothing of the zone is answered until the returned function is called. */
  failZone(zone: string): () => void {
    this.#zonesOut.add(zone);
    return () => this.#zonesOut.delete(zone);
  }

  isZoneOut(zone: string): boolean {
    return this.#zonesOut.has(zone);
  }

  /** Whether a disk, a machine or a zone of this name is in a zone that has failed. */
  isOut(name: string, cluster: InProcessCluster | undefined): boolean {
    if (this.#zonesOut.size === 0 || cluster === undefined) return false;
    const { cloud, config } = cluster;
    const zone =
      config.nodes.find(({ instanceId }) => instanceId === name)?.zone ??
      cloud.disks().find(({ id }) => id === name)?.zone;
    return this.#zonesOut.has(zone ?? name);
  }
}

/** The plugins whose disks the world has; also those of the Flexvolumes are of one. */
function disksPlugins({ plugins, volumes }: SwarmPlan) {
  const ofFlex = volumes.includes("flexvolume") ? [flexProvider(plugins)] : [];
  return [...new Set([...plugins, ...ofFlex])].map(clusterPlugin).filter(({ isShared }) => !isShared);
}
