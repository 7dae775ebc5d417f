/** The crossing of one node: its steps in order. A node that is deleted meanwhile needs none of them any more. */
import { resources } from "@longshore/kube";
import { cordon, isCordonedForCrossing, uncordon } from "./cordon.ts";
import type { CrossingEnv, CrossingOptions } from "./crossing-options.ts";
import { type NodeStep, nodeStepsOn } from "./crossing-steps.ts";
import { gateValuesFor } from "./crossing-subject.ts";
import { drainNode } from "./drain-node.ts";
import { csiNodeLacks, volumesLeft } from "./node-state.ts";
import type { CrossingMark } from "./platform.ts";
import type { Place, StepRunner } from "./step-runner.ts";
import type { Wait } from "./wait.ts";
import { gatesWait, volumesWait, waitFor } from "./waits.ts";
import type { OnWaiting } from "./watch-step.ts";

/** Whether a node that is being flipped is still there is asked so often, in milliseconds. */
const thereMs = 1000;

/** Crosses the node named. @returns whether it has crossed; false when it was deleted */
export async function crossNode(
  env: CrossingEnv,
  options: CrossingOptions,
  runner: StepRunner,
  nodeName: string,
  signal: AbortSignal,
): Promise<boolean> {
  const crossing = new NodeCrossing(env, options, runner, nodeName, signal);
  return crossing.run();
}

class NodeCrossing {
  readonly #env: CrossingEnv;
  readonly #options: CrossingOptions;
  readonly #runner: StepRunner;
  readonly #nodeName: string;
  readonly #signal: AbortSignal;

  constructor(
    env: CrossingEnv,
    options: CrossingOptions,
    runner: StepRunner,
    nodeName: string,
    signal: AbortSignal,
  ) {
    this.#env = env;
    this.#options = options;
    this.#runner = runner;
    this.#nodeName = nodeName;
    this.#signal = signal;
  }

  async run(): Promise<boolean> {
    const look = this.#place("look", "to show whether it has crossed");
    const seen = await this.#runner.patiently(look, this.#signal, (_, signal) => this.#look(signal));
    if (seen !== "to cross") return seen === "crossed";
    for (const step of nodeStepsOn(this.#env.platform)) {
      if (await this.#isGone()) return false;
      await this.#actions[step]();
    }
    return !(await this.#isGone());
  }

  readonly #actions: Readonly<Record<NodeStep, () => Promise<void>>> = {
    cordon: () =>
      this.#step(this.#place("cordon", "to be cordoned"), (_, signal) =>
        cordon(this.#env.kube, this.#nodeName, this.#options.subject.shortName, signal),
      ),
    drain: () =>
      this.#step(this.#place("drain", "its pods to end"), (onWaiting, signal) =>
        this.#drain(onWaiting, signal),
      ),
    "volumes gone": () =>
      this.#step(this.#place("volumes gone", "its volumes to be detached"), (onWaiting, signal) =>
        this.#runner.until(onWaiting, signal, async () => {
          // A scheduler that has not yet heard of the cordon may still bind pods, whose volumes would never go.
          await this.#drain(onWaiting, signal);
          return this.#volumesLeft(signal);
        }),
      ),
    flip: () => this.#flip(),
    "CSINode agrees": () => this.#csiNodeAgrees(),
    uncordon: () =>
      this.#step(this.#place("uncordon", "to be uncordoned"), (_, signal) =>
        uncordon(this.#env.kube, this.#nodeName, signal),
      ),
  };

  async #flip(): Promise<void> {
    const { subject, direction } = this.#options;
    const nodeName = this.#nodeName;
    // Before the flip: the mark ends the time in which the node must show no in-tree call.
    if (direction === "rollback") {
      await this.#mark({ kind: "nodeReturning", plugin: subject.inTreeName, nodeName });
    }
    const values = gateValuesFor(subject, direction);
    await this.#step({ name: "flip", nodeName, wait: gatesWait(nodeName, values) }, (onWaiting, signal) =>
      this.#whileThere(signal, (within) =>
        this.#env.platform.setNodeGates(nodeName, values, within, onWaiting),
      ),
    );
  }

  async #csiNodeAgrees(): Promise<void> {
    const { subject, direction } = this.#options;
    const nodeName = this.#nodeName;
    const { kube, platform } = this.#env;
    await this.#step(this.#place("CSINode agrees", "its CSINode to agree"), (onWaiting, signal) =>
      this.#runner.until(onWaiting, signal, async () => {
        const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal });
        const lack = csiNodeLacks(subject, direction, csiNode);
        if (lack === undefined) return undefined;
        if ((await kube.get(resources.nodes, { name: nodeName }, { signal })) === undefined) return undefined;
        // Pods that were bound late would keep the agent, and with it the CSINode, on the old path.
        if (platform.rollsNodes !== true) await this.#drain(onWaiting, signal);
        return waitFor("CSINode", nodeName, `waits for ${lack}`);
      }),
    );
    if (direction === "migrate" && !(await this.#isGone())) {
      await this.#mark({ kind: "nodeMigrated", plugin: subject.inTreeName, nodeName });
    }
  }

  async #look(signal: AbortSignal): Promise<"crossed" | "gone" | "to cross"> {
    const { kube, platform } = this.#env;
    const { subject, direction } = this.#options;
    const name = this.#nodeName;
    const node = await kube.get(resources.nodes, { name }, { signal });
    if (node === undefined) return "gone"; // Deleted since the list was made: nothing to carry.
    // The cordon goes last: a node that has it is not done, whatever its gates and CSINode say.
    if (isCordonedForCrossing(node)) return "to cross";
    const gates = await platform.nodeGates(name, signal);
    const wanted = Object.entries(gateValuesFor(subject, direction));
    if (gates === undefined || !wanted.every(([gate, value]) => gates[gate] === value)) return "to cross";
    const csiNode = await kube.get(resources.csiNodes, { name }, { signal });
    return csiNodeLacks(subject, direction, csiNode) === undefined ? "crossed" : "to cross";
  }

  async #volumesLeft(signal: AbortSignal): Promise<Wait | undefined> {
    const { kube } = this.#env;
    const node = await kube.get(resources.nodes, { name: this.#nodeName }, { signal });
    if (node === undefined) return undefined;
    const { items } = await kube.list(resources.volumeAttachments, { signal });
    const left = volumesLeft(this.#options.subject, node, items);
    return left.length === 0 ? undefined : volumesWait(this.#nodeName, left, items);
  }

  #drain(onWaiting: OnWaiting, signal: AbortSignal): Promise<void> {
    return drainNode(this.#env, this.#nodeName, this.#options.subject.shortName, onWaiting, signal);
  }

  #isGone(): Promise<boolean> {
    const place = this.#place("look", "to show whether it is still there");
    return this.#runner.patiently(place, this.#signal, async (_, signal) => {
      const node = await this.#env.kube.get(resources.nodes, { name: this.#nodeName }, { signal });
      return node === undefined;
    });
  }

  /** Ends the work when the node is deleted: what would come into effect there never does. */
  async #whileThere(signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const ended = new AbortController();
    const within = AbortSignal.any([signal, ended.signal]);
    let isGone = false;
    const watch = async () => {
      for (;;) {
        await this.#env.clock.sleep(thereMs, within);
        const node = await this.#env.kube
          .get(resources.nodes, { name: this.#nodeName }, { signal: within })
          .catch(() => "unknown");
        if (node !== undefined) continue;
        isGone = true;
        ended.abort(new Error(`Node ${this.#nodeName} is deleted`));
      }
    };
    const watching = watch().catch(() => {}); // It ends by the abort alone.
    try {
      await work(within);
    } catch (error) {
      if (!isGone || signal.aborted) throw error;
    } finally {
      ended.abort(new Error("the step has ended"));
      await watching;
    }
  }

  #place(name: string, why: string): Place {
    return { name, nodeName: this.#nodeName, wait: waitFor("Node", this.#nodeName, why) };
  }

  #step(place: Place, work: Parameters<StepRunner["step"]>[2]): Promise<void> {
    return this.#runner.step(place, this.#signal, work);
  }

  #mark(mark: CrossingMark): Promise<void> {
    return this.#env.platform.noteMark?.(mark, this.#signal) ?? Promise.resolve();
  }
}
