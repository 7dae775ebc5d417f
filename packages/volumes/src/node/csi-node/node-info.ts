/**
 * Makes a driver known on this node's objects, and unknown again: the Node (nodeid annotation, topology labels) and the
 * CSINode. Like the writer of the CSINode, whose callers wait for the outcome, a change is one pass without a queue.
 * Source: docs/behaviour/node-agent.md 2.1-2.3.
 */
import { type Actions, type KubeClient, resources, settled, walkSteps } from "@longshore/kube";
import { type CsiNodeWriter, NodeMissingError } from "./csi-node-writer.ts";
import {
  decideNodeInfoStep,
  NodeInfoError,
  type NodeInfoGoal,
  type NodeInfoStep,
  type ObservedNodeInfo,
} from "./decide-node-info-step.ts";
import type { DriverInfo } from "./driver-info.ts";

/** Writes node information of drivers. */
export class NodeInfoManager {
  readonly #kube: KubeClient;
  readonly #nodeName: string;
  readonly #csiNode: CsiNodeWriter;
  #last: Promise<unknown> = Promise.resolve();

  constructor(kube: KubeClient, nodeName: string, csiNode: CsiNodeWriter) {
    this.#kube = kube;
    this.#nodeName = nodeName;
    this.#csiNode = csiNode;
  }

  /** Node first, CSINode second. @throws NodeInfoError before anything is written when the information is bad */
  async installDriver(name: string, info: DriverInfo, signal: AbortSignal): Promise<void> {
    if (info.nodeID === "") {
      throw new NodeInfoError(
        `CSI driver ${name}: NodeGetInfo gave an empty node_id; the driver must set it`,
      );
    }
    await this.#changeNode({ kind: "install", name, info }, signal);
    await this.#csiNode.setDriver(name, info, signal);
  }

  /** CSINode first, Node second. Labels stay: other components may use them. */
  async uninstallDriver(name: string, signal: AbortSignal): Promise<void> {
    await this.#csiNode.removeDriver(name, signal);
    await this.#changeNode({ kind: "uninstall", name }, signal);
  }

  /** Only this agent writes these keys, so one change at a time is enough. */
  async #changeNode(goal: NodeInfoGoal, signal: AbortSignal): Promise<void> {
    const ref = { name: this.#nodeName };
    const run = this.#last.then(() =>
      walkSteps<ObservedNodeInfo, NodeInfoStep>(
        {
          observe: async () => ({ goal, node: await this.#kube.get(resources.nodes, ref, { signal }) }),
          decide: decideNodeInfoStep,
          actions: this.#actions(signal),
        },
        { key: this.#nodeName, signal },
      ),
    );
    this.#last = run.catch(() => {});
    await run;
  }

  #actions(signal: AbortSignal): Actions<ObservedNodeInfo, NodeInfoStep> {
    const ref = { name: this.#nodeName };
    return {
      patch: async ({ metadata }) => {
        await this.#kube.patch(resources.nodes, ref, { type: "merge", body: { metadata } }, { signal });
        return settled;
      },
      settle: () => settled,
      waitForNode: () => {
        throw new NodeMissingError(`Node ${this.#nodeName} does not exist: register it first`);
      },
      refuse: ({ error }) => {
        throw error;
      },
    };
  }
}
