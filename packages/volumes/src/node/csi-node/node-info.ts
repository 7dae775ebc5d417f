/**
 * Makes a driver known on this node's objects, and unknown again: the Node (nodeid annotation,
 * topology labels) and the CSINode. Source: docs/behaviour/node-agent.md 2.1-2.3.
 */
import { type KubeClient, type Node, resources } from "@longshore/kube";
import type { CsiNodeWriter, DriverInfo } from "./csi-node-writer.ts";
import { NodeMissingError } from "./csi-node-writer.ts";

/** Node annotation: JSON object from driver name to node ID. */
export const nodeIDAnnotation = "csi.volume.kubernetes.io/nodeid";

/** What the driver says of itself cannot be written to the node's objects. */
export class NodeInfoError extends Error {
  override readonly name = "NodeInfoError";
}

/** What has to change on the Node; undefined: nothing. Null removes an annotation, as in a merge patch. */
export interface NodeInfoChange {
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly labels?: Readonly<Record<string, string>>;
}

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
    await this.#changeNode((node) => installOnNode(node, name, info), signal);
    await this.#csiNode.setDriver(name, info, signal);
  }

  /** CSINode first, Node second. Labels stay: other components may use them. */
  async uninstallDriver(name: string, signal: AbortSignal): Promise<void> {
    await this.#csiNode.removeDriver(name, signal);
    await this.#changeNode((node) => uninstallFromNode(node, name), signal).catch((error) => {
      if (!(error instanceof NodeMissingError)) throw error;
    });
  }

  /** Only this agent writes these keys, so one change at a time is enough. */
  async #changeNode(change: (node: Node) => NodeInfoChange | undefined, signal: AbortSignal): Promise<void> {
    const run = this.#last.then(async () => {
      const ref = { name: this.#nodeName };
      const node = await this.#kube.get(resources.nodes, ref, { signal });
      if (node === undefined) {
        throw new NodeMissingError(`Node ${this.#nodeName} does not exist: register it first`);
      }
      const metadata = change(node);
      if (metadata === undefined) return;
      await this.#kube.patch(resources.nodes, ref, { type: "merge", body: { metadata } }, { signal });
    });
    this.#last = run.catch(() => {});
    await run;
  }
}

/** What installing the driver changes on the Node. @throws NodeInfoError on a colliding label or a damaged annotation */
export function installOnNode(node: Node, driverName: string, info: DriverInfo): NodeInfoChange | undefined {
  const current = node.metadata?.labels ?? {};
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(info.topology)) {
    const existing = current[key];
    if (existing === undefined) labels[key] = value;
    else if (existing !== value) {
      throw new NodeInfoError(
        `detected topology value collision: driver ${driverName} reported "${key}":"${value}" but existing label is "${key}":"${existing}"; remove the label or correct the driver`,
      );
    }
  }
  const nodeIDs = nodeIDsOf(node);
  const annotations =
    nodeIDs[driverName] === info.nodeID
      ? undefined
      : { [nodeIDAnnotation]: JSON.stringify({ ...nodeIDs, [driverName]: info.nodeID }) };
  return changeOf(annotations, labels);
}

/** What uninstalling the driver changes on the Node. */
export function uninstallFromNode(node: Node, driverName: string): NodeInfoChange | undefined {
  const { [driverName]: removed, ...others } = nodeIDsOf(node);
  if (removed === undefined) return undefined;
  const left = Object.keys(others).length > 0;
  return { annotations: { [nodeIDAnnotation]: left ? JSON.stringify(others) : null } };
}

function changeOf(
  annotations: Readonly<Record<string, string>> | undefined,
  labels: Readonly<Record<string, string>>,
): NodeInfoChange | undefined {
  const labelled = Object.keys(labels).length > 0;
  if (annotations === undefined && !labelled) return undefined;
  return { ...(annotations !== undefined && { annotations }), ...(labelled && { labels }) };
}

function nodeIDsOf(node: Node): Readonly<Record<string, string>> {
  const text = node.metadata?.annotations?.[nodeIDAnnotation];
  if (text === undefined || text === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      return value as Record<string, string>;
    }
  } catch {
    // Reported below, together with JSON of another shape.
  }
  throw new NodeInfoError(
    `Node ${node.metadata?.name}: annotation ${nodeIDAnnotation} is not a JSON object; remove it`,
  );
}
