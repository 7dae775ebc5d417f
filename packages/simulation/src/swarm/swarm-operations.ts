/** What the operators of a swarm's world do, one operation after the other; crossings go on beside them. */
import { resources } from "@longshore/kube";
import { clusterPlugin, type InProcessCluster, type PluginName, writerSetName } from "@longshore/local";
import { type CrossingDirection, crossingSubject, runCrossing } from "@longshore/migration";
import { noMeter, type Random, SimulatedHost, silentLogger, type VirtualClock } from "@longshore/runtime";
import type { FaultDraw, FaultDraws } from "../fault-draws.ts";
import type { OperationKind, SwarmPlan } from "./swarm-plan.ts";

/** What the operators have. */
export interface SwarmOperationsEnv {
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly draws: FaultDraws;
  readonly plan: SwarmPlan;
  readonly cluster: InProcessCluster;
  /** Cuts a running component off. */
  crash(component: string): void;
  /** The machine loses its power, and all that runs on it ends. */
  losePower(node: string): void;
  onOperation(kind: OperationKind, what: string): void;
}

const namespace = "default";
const pauseMsMax = 20_000;
const downMsMax = 30_000;
const killedAfterMsMax = 60_000;
const againAfterMs = 5000;
const triesMax = 60;

/** The operators. */
export class SwarmOperations {
  readonly #env: SwarmOperationsEnv;
  readonly #signal = new AbortController().signal;
  /** Components that come back. */
  readonly #comeBacks: Promise<void>[] = [];
  /** Gates are changed by one operator at a time. */
  #changes: Promise<void> = Promise.resolve();
  #hasEnded = false;

  constructor(env: SwarmOperationsEnv) {
    this.#env = env;
  }

  /** Makes all operations of the plan. */
  async play(): Promise<void> {
    const { plan, draws, clock } = this.#env;
    for (let round = 0; round < plan.rounds; round++) {
      const draw = draws.next("operation");
      const pauseMs = 1 + draw.below(pauseMsMax);
      const kind = plan.operations[draw.below(Math.max(1, plan.operations.length))];
      // Drawn always: whether an operation is let happen changes no later one.
      const choices = {
        target: draw.below(1 << 16),
        ms: 1 + draw.below(downMsMax),
        isOn: draw.below(2) === 1,
      };
      const killMs = 1 + draw.below(killedAfterMsMax);
      await clock.sleep(pauseMs, this.#signal);
      if (kind !== undefined) await this.#make(kind, { ...choices, killMs, draw });
    }
  }

  /** What was begun comes to its end, and every component runs. */
  async end(): Promise<void> {
    const { cluster, plan } = this.#env;
    this.#hasEnded = true;
    await Promise.all(this.#comeBacks);
    // What failed as it started: a change may wait for it, such as a crossing for a driver on every node.
    await this.#startThoseDown();
    await this.#changes;
    await this.#startThoseDown();
    for (const { name } of cluster.config.nodes) await this.#setSchedulable(name, true);
    await this.#scale(plan.replicas);
  }

  async #startThoseDown(): Promise<void> {
    const { cluster } = this.#env;
    for (const name of cluster.componentNames) {
      // One that is being restarted may not have ended yet.
      if (!cluster.isRunning(name)) await this.#insist(() => cluster.start(name));
    }
  }

  async #make(kind: OperationKind, choice: Choice): Promise<void> {
    const { cluster, plan, draws } = this.#env;
    const { target, ms, isOn, draw } = choice;
    const node = cluster.config.nodes[target % plan.nodes]?.name ?? "";
    const component = cluster.componentNames[target % cluster.componentNames.length] ?? "";
    const happens = (what: string) => {
      if (!draws.happens(draw)) return false;
      this.#env.onOperation(kind, what);
      return true;
    };
    switch (kind) {
      case "podDeleted": {
        const pods = cluster.objects(resources.pods);
        const pod = pods[target % Math.max(1, pods.length)]?.metadata.name;
        if (pod !== undefined && happens(`delete pod ${pod}`)) await this.#deletePod(pod);
        return;
      }
      case "drain":
        if (happens(`drain ${node} for ${ms} ms`)) await this.#drain(node, ms);
        return;
      case "scale":
        if (happens(`scale to ${target % (plan.replicas + 1)}`))
          await this.#scale(target % (plan.replicas + 1));
        return;
      case "componentCrash":
        if (cluster.isRunning(component) && happens(`${component} crashes for ${ms} ms`)) {
          this.#env.crash(component);
          this.#comesBack(ms, component);
        }
        return;
      case "componentRestart":
        if (cluster.isRunning(component) && happens(`restart ${component}`)) {
          this.#change(() =>
            cluster.isRunning(component) ? cluster.restart(component) : cluster.start(component),
          );
        }
        return;
      case "apiServerRestart":
        if (happens("restart the API server")) {
          // With a stream of its own: with that of its start it would give the same UIDs again.
          cluster.restartApiServer(this.#env.random.fork(`API server ${draw.name}`));
        }
        return;
      case "powerLoss":
        if (happens(`${node} loses its power for ${ms} ms`)) {
          this.#env.losePower(node);
          this.#comesBack(ms, node, `csi-node/${node}`);
        }
        return;
      case "gateFlip": {
        const plugin = plan.plugins[target % plan.plugins.length];
        const places = [undefined, ...cluster.config.nodes.map(({ name }) => name)];
        const place = places[(target >> 4) % places.length];
        if (plugin === undefined) return;
        const values = { [clusterPlugin(plugin).gate]: isOn };
        if (!happens(`${clusterPlugin(plugin).gate}=${isOn} on ${place ?? "the control plane"}`)) return;
        const { platform } = cluster;
        this.#change(() =>
          place === undefined
            ? platform.setControlPlaneGates(values, this.#signal)
            : platform.setNodeGates(place, values, this.#signal),
        );
        return;
      }
      case "crossing": {
        const plugin = plan.plugins[target % plan.plugins.length];
        const direction = isOn ? "migrate" : "rollback";
        if (plugin === undefined || !happens(`${direction} ${plugin}, killed after ${choice.killMs} ms`))
          return;
        this.#change(this.#crossing(plugin, direction, choice.killMs));
      }
    }
  }

  /** Operators try until it is done; once the faults have ended, not for ever. */
  #change(make: () => Promise<unknown>): void {
    this.#changes = this.#changes.then(() => this.#insist(make));
    // It is awaited at the end; until then its failure must not end the process.
    this.#changes.catch(() => {});
  }

  async #insist(make: () => Promise<unknown>): Promise<void> {
    for (let calmTries = 0; ; ) {
      try {
        await make();
        return;
      } catch (error) {
        if (this.#hasEnded && ++calmTries === triesMax) throw error;
        await this.#env.clock.sleep(againAfterMs, this.#signal);
      }
    }
  }

  #comesBack(ms: number, ...components: readonly string[]): void {
    const { clock, cluster } = this.#env;
    const back = clock.sleep(ms, this.#signal).then(async () => {
      // As a supervisor does: what fails as it starts is started again.
      for (const component of components) await this.#insist(() => cluster.start(component));
    });
    back.catch(() => {});
    this.#comeBacks.push(back);
  }

  /** A crossing that is killed once, and begun again until it comes to its end. */
  #crossing(plugin: PluginName, direction: CrossingDirection, killMs: number): () => Promise<void> {
    const { clock, cluster, random } = this.#env;
    const { kube, platform } = cluster;
    // One host for all tries: it holds the journal from which the next run resumes.
    const host = new SimulatedHost({ name: `operator-${direction}-${plugin}` });
    const env = {
      clock,
      random: random.fork("crossing"),
      logger: silentLogger,
      meter: noMeter,
      kube,
      platform,
      host,
    };
    const options = { subject: crossingSubject(plugin), direction, journalFile: "/crossing.json" };
    let isFirst = true;
    return async () => {
      const killed = new AbortController();
      const timer = isFirst ? clock.timer(killMs, () => killed.abort(new Error("killed"))) : undefined;
      isFirst = false;
      try {
        await runCrossing(env, options, killed.signal);
      } finally {
        timer?.cancel();
      }
    };
  }

  async #drain(node: string, ms: number): Promise<void> {
    const { cluster, clock } = this.#env;
    await this.#setSchedulable(node, false);
    for (const { metadata, spec } of cluster.objects(resources.pods)) {
      if (spec?.nodeName === node) await this.#deletePod(metadata.name);
    }
    await clock.sleep(ms, this.#signal);
    await this.#setSchedulable(node, true);
  }

  async #deletePod(name: string): Promise<void> {
    const { kube } = this.#env.cluster;
    await kube.delete(resources.pods, { namespace, name }, { signal: this.#signal }).catch(() => {});
  }

  async #scale(replicas: number): Promise<void> {
    const { cluster, plan } = this.#env;
    for (const plugin of plan.plugins) {
      const ref = { namespace, name: writerSetName(plugin) };
      const patch = { type: "merge", body: { spec: { replicas } } } as const;
      await cluster.kube.patch(resources.statefulSets, ref, patch, { signal: this.#signal });
    }
  }

  async #setSchedulable(name: string, isSchedulable: boolean): Promise<void> {
    const body = { spec: { unschedulable: isSchedulable ? null : true } };
    const options = { signal: this.#signal };
    await this.#env.cluster.kube.patch(resources.nodes, { name }, { type: "merge", body }, options);
  }
}

interface Choice {
  readonly target: number;
  readonly ms: number;
  readonly isOn: boolean;
  readonly killMs: number;
  readonly draw: FaultDraw;
}
