/**
 * Writes this node's CSINode object: drivers and the migrated-plugins annotation. All writes of one
 * agent go through one writer, one after the other, so that none undoes another.
 * Source: docs/behaviour/node-agent.md 2.
 */
import {
  type CSINode,
  type CSINodeDriver,
  isAlreadyExists,
  isConflict,
  type KubeClient,
  resources,
  type Stored,
} from "@longshore/kube";
import { backoffMs, type RuntimeEnv } from "@longshore/runtime";
import { withMigratedPlugins } from "./migrated-plugins.ts";

/** The Node object is not there yet, so no CSINode can belong to it. */
export class NodeMissingError extends Error {
  override readonly name = "NodeMissingError";
}

/** Most CSINode.spec.drivers[].allocatable.count can say. */
const largestCount = 2_147_483_647;
const retrySteps = 4;
const retryBackoff = { initialMs: 10, maximumMs: 1250, factor: 5, jitter: 0.1 };

/** A driver as NodeGetInfo describes it. */
export interface DriverInfo {
  readonly nodeID: string;
  /** Most volumes of the driver on this node; 0: not said. */
  readonly maxVolumes: bigint;
  readonly topology: Readonly<Record<string, string>>;
}

/** Changes the CSINode of one node. */
export class CsiNodeWriter {
  readonly #env: RuntimeEnv & { readonly kube: KubeClient };
  readonly #nodeName: string;
  /** What the annotation is to list; undefined: not decided yet, so it is left as it is. */
  #migrated: ReadonlySet<string> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(env: RuntimeEnv & { readonly kube: KubeClient }, nodeName: string) {
    this.#env = env;
    this.#nodeName = nodeName;
  }

  /** The object as it is now, by a live GET. */
  read(signal: AbortSignal): Promise<Stored<CSINode> | undefined> {
    return this.#env.kube.get(resources.csiNodes, { name: this.#nodeName }, { signal });
  }

  /** Makes the annotation list exactly these plugins, now and with every later write. */
  async setMigratedPlugins(plugins: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    this.#migrated = plugins;
    await this.#change((node) => node, signal);
  }

  /** Adds the driver's entry or replaces it; an equal one stays. */
  async setDriver(name: string, info: DriverInfo, signal: AbortSignal): Promise<void> {
    await this.#change((node) => withDriver(node, name, info), signal);
  }

  /** Removes the driver's entry; a missing entry or object is fine. */
  async removeDriver(name: string, signal: AbortSignal): Promise<void> {
    if ((await this.read(signal)) === undefined) return;
    await this.#change((node) => withoutDriver(node, name), signal);
  }

  /** One change at a time: GET, change, write; repeated a few times when the write loses. */
  async #change(change: (node: CSINode) => CSINode, signal: AbortSignal): Promise<void> {
    const run = this.#last.then(async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.#changeOnce(change, signal);
        } catch (error) {
          const retriable = isConflict(error) || isAlreadyExists(error);
          if (!retriable || attempt >= retrySteps) throw error;
          await this.#env.clock.sleep(backoffMs(retryBackoff, attempt, this.#env.random), signal);
        }
      }
    });
    this.#last = run.catch(() => {});
    await run;
  }

  async #changeOnce(change: (node: CSINode) => CSINode, signal: AbortSignal): Promise<void> {
    const { kube } = this.#env;
    const stored = await this.read(signal);
    const before: CSINode = stored ?? (await this.#emptyNode(signal));
    const after = this.#withAnnotation(change(before));
    if (stored === undefined) await kube.create(resources.csiNodes, after, { signal });
    else if (after !== before) await kube.update(resources.csiNodes, after, { signal });
  }

  #withAnnotation(node: CSINode): CSINode {
    if (this.#migrated === undefined) return node;
    return withMigratedPlugins(node, this.#migrated);
  }

  async #emptyNode(signal: AbortSignal): Promise<CSINode> {
    const name = this.#nodeName;
    const node = await this.#env.kube.get(resources.nodes, { name }, { signal });
    if (node === undefined) throw new NodeMissingError(`Node ${name} does not exist: register it first`);
    return {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSINode",
      metadata: {
        name,
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: node.metadata.uid }],
      },
      spec: { drivers: [] },
    };
  }
}

/** The object with the driver's entry as it should be. */
export function withDriver(node: CSINode, name: string, info: DriverInfo): CSINode {
  const entry = entryOf(name, info);
  const existing = driversOf(node).find((driver) => driver.name === name);
  if (existing !== undefined && sameEntry(existing, entry)) return node;
  const others = driversOf(node).filter((driver) => driver.name !== name);
  return { ...node, spec: { ...node.spec, drivers: [...others, entry] } };
}

function withoutDriver(node: CSINode, name: string): CSINode {
  const drivers = driversOf(node).filter((driver) => driver.name !== name);
  if (drivers.length === driversOf(node).length) return node;
  return { ...node, spec: { ...node.spec, drivers } };
}

/** A Kubernetes API server returns an empty list of drivers as null, although the type does not allow it. */
function driversOf(node: CSINode): readonly CSINodeDriver[] {
  return node.spec.drivers ?? [];
}

function entryOf(name: string, { nodeID, maxVolumes, topology }: DriverInfo): CSINodeDriver {
  const topologyKeys = Object.keys(topology).sort();
  const count = maxVolumes > largestCount ? largestCount : Number(maxVolumes);
  return {
    name,
    nodeID,
    ...(topologyKeys.length > 0 && { topologyKeys }),
    ...(count > 0 && { allocatable: { count } }),
  };
}

function sameEntry(a: CSINodeDriver, b: CSINodeDriver): boolean {
  const keys = (driver: CSINodeDriver) => [...(driver.topologyKeys ?? [])].sort().join(",");
  return a.nodeID === b.nodeID && keys(a) === keys(b) && a.allocatable?.count === b.allocatable?.count;
}
