/** The cluster of a world: every component of it lives behind faulty seams, and can be cut off from them or stopped at any time. */
import type { KubeObject } from "@longshore/kube";
import {
  clusterConfig,
  createInProcessCluster,
  type DriverProgramRun,
  type InProcessCluster,
  type Seams,
} from "@longshore/local";
import { type Random, type RuntimeEnv, silentLogger } from "@longshore/runtime";
import type { CloudCaller } from "@longshore/volumes";
import { type CallGate, Life } from "../cut.ts";
import type { FaultyCloud } from "../faulty-cloud.ts";
import type { MachineTime } from "../machine-time.ts";
import { attachmentCalls, flexComponent } from "../world.ts";
import { countedClient } from "./counted-client.ts";
import { DriverProcesses } from "./driver-processes.ts";
import { flexProvider, flexVolumeDir, runFlexDriver } from "./flex-driver.ts";
import { type Containers, Machines } from "./machines.ts";
import { withFaultyWatches } from "./swarm-faults.ts";
import type { SwarmPlan } from "./swarm-plan.ts";
import { swarmPrograms } from "./swarm-writer.ts";
import { WorldFaults, type WorldFaultsEnv } from "./world-faults.ts";
import { zonalCloud } from "./zonal-cloud.ts";

type ClusterConfig = InProcessCluster["config"];

/** What it needs. */
export interface FaultyClusterEnv extends Omit<WorldFaultsEnv, "cluster" | "isRunning" | "die"> {
  readonly random: Random;
  readonly signal: AbortSignal;
  /** The CustomResourceDefinitions of snapshots; none: there are no snapshots. */
  readonly snapshotDefinitions: readonly KubeObject[];
  /** A component has died, and is to be started again after so many milliseconds. */
  onDied(component: string, downMs: number): void;
}

/** The cluster. */
export class FaultyCluster {
  readonly faults: WorldFaults;
  readonly machines: Machines;
  readonly #env: FaultyClusterEnv;
  readonly #lives = new Map<string, Life>();
  readonly #processes = new DriverProcesses();
  /** Directories of drivers that are not named as these, by node and driver. */
  readonly #driverDirectories = new Map<string, string>();
  #cluster: InProcessCluster | undefined;

  constructor(env: FaultyClusterEnv) {
    this.#env = env;
    const { random, plan, signal, checks } = env;
    this.machines = new Machines({ random, plan, signal, checks });
    this.faults = new WorldFaults({
      ...env,
      cluster: () => this.#cluster,
      isRunning: (component) => this.#cluster?.isRunning(component) === true,
      die: (component, downMs) => {
        this.crash(component);
        env.onDied(component, downMs);
      },
    });
  }

  /** Undefined while it comes up. */
  get running(): InProcessCluster | undefined {
    return this.#cluster;
  }

  /** Brings it up. */
  async start(): Promise<InProcessCluster> {
    const { clock, random, plan, reached, checks, snapshotDefinitions } = this.#env;
    const config = configOf(plan);
    const gate = this.faults.gate();
    const parts = { config, gate, cloud: this.faults.cloud() };
    const env: RuntimeEnv = {
      clock,
      random: random.fork("cluster"),
      logger: silentLogger,
      meter: reached.meter(),
    };
    const cluster = await createInProcessCluster(env, {
      config,
      restartsEnded: true,
      standby: plan.operations.includes("leaderPaused"),
      snapshotDefinitions,
      ...(plan.volumes.includes("flexvolume")
        ? { flexVolumes: { directory: flexVolumeDir, run: (run) => this.#runDriver(parts, run) } }
        : {}),
      driverDirectory: (node, driver) => this.#driverDirectories.get(`${node} ${driver}`) ?? driver,
      programs: (host) => {
        const { history, devices, locks } = checks;
        const time = this.machines.of(host.name).clock(clock);
        return swarmPrograms({ clock: time, history, devices, locks }, host);
      },
      isolate: (name, seams) => this.#isolate(parts, name, seams),
    });
    this.#cluster = cluster;
    return cluster;
  }

  /** The component is cut off and forgotten. */
  crash(component: string): void {
    const cluster = this.#cluster;
    if (cluster === undefined) return;
    cluster.drop(component);
    this.#processes.end(component);
    const life = this.#lives.get(component);
    this.#env.reached.crashed(component, life?.underWay ?? []);
    for (const endpoint of life?.cut() ?? []) cluster.csi.crash(endpoint);
  }

  /** Stops a process, and returns the function that lets it go on. */
  pause(component: string): () => void {
    const life = this.#lives.get(component);
    life?.pause();
    return () => life?.goOn();
  }

  /** Whether the process is stopped. */
  isPaused(component: string): boolean {
    return this.#lives.get(component)?.isPaused === true;
  }

  /** From its next start on the node's driver has its socket in this directory. */
  moveDriver(node: string, driver: string, directory: string): void {
    this.#driverDirectories.set(`${node} ${driver}`, directory);
  }

  /** A machine loses its power, with all that runs on it. */
  async losePower(cluster: InProcessCluster, node: string): Promise<void> {
    this.#crashAllOf(node);
    await this.machines.losePower(cluster, node);
  }

  /** A machine shuts down in order, agent and drivers first, and boots. */
  async reboot(cluster: InProcessCluster, node: string): Promise<void> {
    for (const component of componentsOf(node)) await cluster.shutDown(component);
    await this.machines.endContainers(node);
    // What was started again meanwhile is killed.
    this.#crashAllOf(node);
    await this.machines.reboot(cluster, node);
  }

  /** Also what is starting or stopping there. */
  #crashAllOf(node: string): void {
    for (const component of componentsOf(node)) this.crash(component);
  }

  #isolate(parts: FaultyParts, name: string, seams: Seams): Seams {
    const { clock, checks } = this.#env;
    const { runtime } = seams;
    if ("losePower" in runtime) this.machines.runs(name, runtime as Containers);
    const machine = this.#machineOf(parts, name);
    const life = new Life(name, parts.gate, machine);
    this.#lives.set(name, life);
    return life.seams({
      ...seams,
      kube: countedClient(withFaultyWatches(this.faults.ofCalls, name, seams.kube), (verb, object) =>
        checks.requests.asked(name, verb, object, clock.monotonicMs()),
      ),
      cloudFor: this.#cloudOf(parts, seams, machine),
    });
  }

  /** Runs a Flexvolume driver: a process of its own, which goes on while the one that runs it is stopped. */
  #runDriver(parts: FaultyParts, { componentName, seams, options }: DriverProgramRun<Seams>) {
    const machine = this.#machineOf(parts, componentName);
    const life = new Life(componentName, parts.gate, machine);
    const { host, cloudFor } = life.seams({ ...seams, cloudFor: this.#cloudOf(parts, seams, machine) });
    const provider = flexProvider(this.#env.plan.plugins);
    const cloud = cloudFor({ path: "in-tree", component: flexComponent, provider });
    const driver = { host, cloud, machine: componentName };
    const { args, signal } = options;
    return this.#processes.run(componentName, life, signal, () => runFlexDriver(driver, args));
  }

  /** The machine on which a component runs; undefined: it is no node's. */
  #machineOf({ config }: FaultyParts, component: string): MachineTime | undefined {
    const node = config.nodes.find(({ name }) => [name, `csi-node/${name}`].includes(component));
    return node && this.machines.of(node.name);
  }

  #cloudOf({ config, cloud }: FaultyParts, seams: Seams, machine: MachineTime | undefined) {
    return (caller: CloudCaller) => {
      const provider = seams.cloudFor(caller);
      const fromHere = machine === undefined ? provider : machine.whilePowered(provider);
      const isOut = (of: string) => this.machines.isOut(of, this.#cluster);
      return zonalCloud(cloud.around(fromHere, attachmentCalls(config, caller)), isOut);
    };
  }
}

/** What every component of the cluster goes through. */
interface FaultyParts {
  readonly config: ClusterConfig;
  readonly gate: CallGate;
  readonly cloud: FaultyCloud;
}

function componentsOf(node: string): readonly string[] {
  return [node, `csi-node/${node}`];
}

function configOf({ nodes, zones, plugins, nodeDecides }: SwarmPlan): ClusterConfig {
  const spread = clusterConfig(nodes, "unprivileged", {
    plugins,
    ...(nodeDecides ? { nodeDecidesMigration: true } : {}),
  });
  const nodesIn = spread.nodes.map((node, at) => ({ ...node, zone: spread.nodes[at % zones]?.zone ?? "" }));
  return { ...spread, nodes: nodesIn };
}
