/** One run of a crossing: its steps, in order, each of which first looks whether it is done already. */
import { resources } from "@longshore/kube";
import { cordon, isCordonedForCrossing, uncordon } from "./cordon.ts";
import { type CrossingEnv, type CrossingOptions, defaultStepTimeoutMs } from "./crossing-options.ts";
import {
  type NodeStep,
  nodeSteps,
  nodesInOrder,
  stepsAfterNodes,
  stepsBeforeNodes,
} from "./crossing-steps.ts";
import { gateValuesFor } from "./crossing-subject.ts";
import { drainNode } from "./drain-node.ts";
import type { JournalKeeper } from "./journal-keeper.ts";
import { objectsCarryingMarks } from "./marks.ts";
import { csiNodeLacks, volumesLeft } from "./node-state.ts";
import { patiently } from "./patience.ts";
import type { CrossingMark } from "./platform.ts";
import type { Wait, WaitReport } from "./wait.ts";
import { gatesWait, volumesWait, waitFor } from "./waits.ts";
import { type OnWaiting, watchStep } from "./watch-step.ts";

const pollMs = 100;

/** The work of a step: it reports what it waits for, and ends when the signal aborts. */
type Work<T> = (onWaiting: OnWaiting, signal: AbortSignal) => Promise<T>;

interface Place {
  readonly name: string;
  readonly nodeName?: string;
  /** What it waits for unless it says otherwise. */
  readonly wait: Wait;
}

/** Runs the steps of one crossing in order; a step that is done already is skipped. */
export class CrossingRun {
  readonly steps: { name: string; ms: number }[] = [];
  readonly #env: CrossingEnv;
  readonly #options: CrossingOptions;
  readonly #keeper: JournalKeeper;
  readonly #signal: AbortSignal;

  constructor(env: CrossingEnv, options: CrossingOptions, keeper: JournalKeeper, signal: AbortSignal) {
    this.#env = env;
    this.#options = options;
    this.#keeper = keeper;
    this.#signal = signal;
  }

  /** Fails at once, and leaves the journal as it was. */
  async preflight(work: Work<void>): Promise<void> {
    const wait = waitFor("API server", "", "to list what is in the cluster");
    const reportWait = (report: WaitReport) =>
      this.#options.onEvent?.({ kind: "waiting", step: "preflight", ...report });
    await this.#reported({ name: "preflight", wait }, () =>
      this.#watch({ name: "preflight", wait }, reportWait, work),
    );
  }

  /** Everything after the preflight. */
  async carry(): Promise<void> {
    const { subject, direction, by } = this.#options;
    const now = this.#env.clock.now().toISOString();
    await this.#keeper.write({ run: { ...(by === undefined ? {} : { by }), startedAt: now, aliveAt: now } });
    for (const step of stepsBeforeNodes(direction)) await this.#setControlPlane(step);
    if (direction === "rollback") {
      await this.#mark({ kind: "clusterReturning", plugin: subject.inTreeName });
    }
    await this.#crossAllNodes();
    if (direction === "migrate") {
      await this.#mark({ kind: "clusterMigrated", plugin: subject.inTreeName });
    } else {
      for (const step of stepsAfterNodes(direction)) {
        await (step === "objects clean" ? this.#objectsClean() : this.#setControlPlane(step));
      }
      await this.#mark({ kind: "clusterReturned", plugin: subject.inTreeName });
    }
    await this.#keeper.write({ finishedAt: this.#env.clock.now().toISOString() });
  }

  #setControlPlane(name: string): Promise<void> {
    const { subject, direction } = this.#options;
    const values = gateValuesFor(subject, direction);
    return this.#step({ name, wait: gatesWait(undefined, values) }, (_, signal) =>
      this.#env.platform.setControlPlaneGates(values, signal),
    );
  }

  /** Crosses every node, also those that join the cluster meanwhile. */
  async #crossAllNodes(): Promise<void> {
    const seen = new Set<string>();
    for (;;) {
      const news = (await this.#nodesInOrder()).filter((name) => !seen.has(name));
      if (news.length === 0) return;
      for (const nodeName of news) {
        await this.#crossNode(nodeName);
        seen.add(nodeName);
      }
    }
  }

  /** Nodes by name; going back, the other way round. */
  async #nodesInOrder(): Promise<string[]> {
    const wait = waitFor("API server", "", "to list the nodes");
    const { items } = await this.#patiently({ name: "nodes", wait }, (_, signal) =>
      this.#env.kube.list(resources.nodes, { signal }),
    );
    const names = items.map((node) => node.metadata.name);
    return nodesInOrder(names, this.#options.direction);
  }

  async #crossNode(nodeName: string): Promise<void> {
    const { kube, platform } = this.#env;
    const { subject, direction } = this.#options;
    const about = (name: string, why: string): Place => ({
      name,
      nodeName,
      wait: waitFor("Node", nodeName, why),
    });
    const look = about("look", "to show whether it has crossed");
    if (await this.#patiently(look, (_, signal) => this.#hasCrossed(nodeName, signal))) return;
    const actions: Readonly<Record<NodeStep, () => Promise<void>>> = {
      cordon: () =>
        this.#step(about("cordon", "to be cordoned"), (_, signal) =>
          cordon(kube, nodeName, subject.shortName, signal),
        ),
      drain: () =>
        this.#step(about("drain", "its pods to end"), (onWaiting, signal) =>
          drainNode(this.#env, nodeName, onWaiting, signal),
        ),
      "volumes gone": () =>
        this.#step(about("volumes gone", "its volumes to be detached"), (onWaiting, signal) =>
          this.#until(onWaiting, signal, async () => {
            // A scheduler that has not yet heard of the cordon may still bind pods, whose volumes would never go.
            await drainNode(this.#env, nodeName, onWaiting, signal);
            return this.#volumesLeft(nodeName, signal);
          }),
        ),
      flip: async () => {
        // Before the flip: the mark ends the time in which the node must show no in-tree call.
        if (direction === "rollback") {
          await this.#mark({ kind: "nodeReturning", plugin: subject.inTreeName, nodeName });
        }
        const values = gateValuesFor(subject, direction);
        await this.#step({ name: "flip", nodeName, wait: gatesWait(nodeName, values) }, (_, signal) =>
          platform.setNodeGates(nodeName, values, signal),
        );
      },
      "CSINode agrees": async () => {
        await this.#step(about("CSINode agrees", "its CSINode to agree"), (onWaiting, signal) =>
          this.#until(onWaiting, signal, async () => {
            const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal });
            const lack = csiNodeLacks(subject, direction, csiNode);
            if (lack === undefined) return undefined;
            // Pods that were bound late would keep the agent, and with it the CSINode, on the old path.
            await drainNode(this.#env, nodeName, onWaiting, signal);
            return waitFor("CSINode", nodeName, `waits for ${lack}`);
          }),
        );
        if (direction === "migrate") {
          await this.#mark({ kind: "nodeMigrated", plugin: subject.inTreeName, nodeName });
        }
      },
      uncordon: () =>
        this.#step(about("uncordon", "to be uncordoned"), (_, signal) => uncordon(kube, nodeName, signal)),
    };
    for (const step of nodeSteps) await actions[step]();
    await this.#keeper.write({ nodesDone: [...this.#keeper.journal.nodesDone, nodeName] });
  }

  async #hasCrossed(nodeName: string, signal: AbortSignal): Promise<boolean> {
    const { kube, platform } = this.#env;
    const { subject, direction } = this.#options;
    const node = await kube.get(resources.nodes, { name: nodeName }, { signal });
    if (node === undefined) return true; // Deleted since the list was made: nothing to carry.
    // The cordon goes last: a node that has it is not done, whatever its gates and CSINode say.
    if (isCordonedForCrossing(node)) return false;
    const gates = await platform.nodeGates(nodeName, signal);
    const wanted = Object.entries(gateValuesFor(subject, direction));
    if (gates === undefined || !wanted.every(([name, value]) => gates[name] === value)) return false;
    const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal });
    return csiNodeLacks(subject, direction, csiNode) === undefined;
  }

  async #volumesLeft(nodeName: string, signal: AbortSignal): Promise<Wait | undefined> {
    const { kube } = this.#env;
    const node = await kube.get(resources.nodes, { name: nodeName }, { signal });
    if (node === undefined) return undefined;
    const { items } = await kube.list(resources.volumeAttachments, { signal });
    const left = volumesLeft(this.#options.subject, node, items);
    return left.length === 0 ? undefined : volumesWait(nodeName, left, items);
  }

  /** PVs and claims of the plugin carry nothing any more that the driver's sidecars put there. */
  #objectsClean(): Promise<void> {
    const { kube } = this.#env;
    const wait = waitFor("PersistentVolumes", "", "to carry no mark of the driver");
    return this.#step({ name: "objects clean", wait }, (onWaiting, signal) =>
      this.#until(onWaiting, signal, async () => {
        const [volumes, claims] = await Promise.all([
          kube.list(resources.persistentVolumes, { signal }),
          kube.list(resources.persistentVolumeClaims, { signal }),
        ]);
        const subjects = objectsCarryingMarks(this.#options.subject, volumes.items, claims.items);
        return subjects.length === 0 ? undefined : { subjects };
      }),
    );
  }

  /** Polls until `obstacle` finds none. */
  async #until(
    onWaiting: OnWaiting,
    signal: AbortSignal,
    obstacle: () => Promise<Wait | undefined>,
  ): Promise<void> {
    for (;;) {
      const wait = await obstacle();
      if (wait === undefined) return;
      onWaiting(wait);
      await this.#env.clock.sleep(pollMs, signal);
    }
  }

  #mark(mark: CrossingMark): Promise<void> {
    return this.#env.platform.noteMark?.(mark, this.#signal) ?? Promise.resolve();
  }

  #step(place: Place, work: Work<void>): Promise<void> {
    return this.#reported(place, () => this.#patiently(place, work));
  }

  /** Reports the step's beginning and end. */
  async #reported(place: Place, work: () => Promise<void>): Promise<void> {
    const { name: step, nodeName } = place;
    const node = nodeName === undefined ? {} : { nodeName };
    const startMs = this.#env.clock.monotonicMs();
    this.#options.onEvent?.({ kind: "stepStarted", step, ...node });
    await work();
    const ms = Math.round(this.#env.clock.monotonicMs() - startMs);
    this.steps.push({ name: nodeName === undefined ? step : `${nodeName}: ${step}`, ms });
    this.#options.onEvent?.({ kind: "stepDone", step, ...node, ms });
  }

  /** Does the work within the step's limit, and waits while the API server is unreachable. */
  #patiently<T>(place: Place, work: Work<T>): Promise<T> {
    const { clock } = this.#env;
    const { name, nodeName } = place;
    const node = nodeName === undefined ? {} : { nodeName };
    this.#keeper.begin({ name, ...node, since: clock.now().toISOString() });
    const reportWait = (report: WaitReport) => {
      const since = new Date(clock.now().getTime() - report.waitedMs).toISOString();
      this.#keeper.note({ waiting: { since, subjects: report.wait.subjects } });
      this.#options.onEvent?.({ kind: "waiting", step: name, ...node, ...report });
    };
    return this.#watch(place, reportWait, (onWaiting, signal) =>
      patiently(clock, onWaiting, signal, () => work(onWaiting, signal)),
    );
  }

  #watch<T>(place: Place, onWaiting: (report: WaitReport) => void, work: Work<T>): Promise<T> {
    const { name: step, nodeName, wait } = place;
    const limitMs = this.#options.stepTimeoutMs ?? defaultStepTimeoutMs;
    return watchStep(this.#env.clock, { step, nodeName, limitMs, wait, onWaiting }, this.#signal, work);
  }
}
