/** The machines of a world: their clocks, their power, and the zones that they are in. */
import { clusterPlugin, type InProcessCluster } from "@longshore/local";
import type { Random } from "@longshore/runtime";
import type { ContractWatch } from "../contract-watch.ts";
import { MachineTime } from "../machine-time.ts";
import { flexProvider } from "./flex-driver.ts";
import type { SwarmPlan } from "./swarm-plan.ts";

const skewMsMax = 10 * 60_000;

/** What they need. */
export interface MachinesEnv {
  readonly random: Random;
  readonly plan: SwarmPlan;
  readonly watch: ContractWatch;
  readonly signal: AbortSignal;
}

/** All of one world, by the names of nodes. */
export class Machines {
  readonly #env: MachinesEnv;
  readonly #times = new Map<string, MachineTime>();
  readonly #powers = new Map<string, () => void>();
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

  /** The containers of this node end in this way with its power. */
  endsWithPower(node: string, end: () => void): void {
    this.#powers.set(node, end);
  }

  /** The machine loses its power: what was not synced is lost, and what it attached by itself is gone. */
  async losePower(cluster: InProcessCluster, node: string): Promise<void> {
    this.#powers.get(node)?.();
    cluster.hostOf(node).losePower();
    this.of(node).boots++;
    await this.letGo(cluster, node, false);
  }

  /** What the node attached by itself goes with its machine; all of it, where the provider has taken that away. */
  async letGo({ cloud, config }: InProcessCluster, nodeName: string, isTakenAway: boolean): Promise<void> {
    const { plan, watch, signal } = this.#env;
    const instanceId = config.nodes.find(({ name }) => name === nodeName)?.instanceId ?? "";
    const ofFlex = plan.volumes.includes("flexvolume") ? [flexProvider(plan.plugins)] : [];
    const plugins = [...plan.plugins, ...ofFlex].map(clusterPlugin).filter(({ isShared }) => !isShared);
    for (const { name: provider, controllerPublishes } of plugins) {
      if (controllerPublishes && !isTakenAway) continue;
      const caller = cloud.forCaller({ path: "in-tree", component: "power", provider });
      for (const { id, attachments } of await caller.listDisks(signal)) {
        if (!attachments.some((each) => each.instanceId === instanceId)) continue;
        const { path, plugin } = watch.attacherOf(id, nodeName) ?? { path: "in-tree", plugin: "" };
        watch.asked({ op: "detach", path, plugin, diskId: id, nodeName });
        await caller.detachDisk(id, instanceId, signal);
      }
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
