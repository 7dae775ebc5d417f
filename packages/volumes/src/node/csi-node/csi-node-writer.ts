/**
 * Writes this node's CSINode object: drivers and the migrated-plugins annotation. All changes of one agent go through
 * one writer, one after the other, so that none undoes another.
 *
 * Each change observes, decides and acts like a pass of a controller, but without a queue: its caller (the registration of a
 * plugin, the migration of the node) waits for its outcome, and has a rule of its own for what follows a failure.
 * The first CSINode of a node takes over what its CSINodeInfo says: its drivers' volumes stay reachable by node ID until each
 * has registered here.
 * Source: docs/behaviour/node-agent.md 2.
 */
import {
  type Actions,
  type CSINode,
  type CSINodeDriver,
  KubeApiError,
  type KubeClient,
  type Next,
  type Node,
  observeAgain,
  resources,
  type Stored,
  settled,
  walkSteps,
} from "@longshore/kube";
import { backoffMs, errorChain, type RuntimeEnv } from "@longshore/runtime";
import {
  type CsiNodeChange,
  type CsiNodeStep,
  decideCsiNodeStep,
  isOfAnother,
  type ObservedCsiNode,
} from "./decide-csi-node-step.ts";
import type { DriverInfo } from "./driver-info.ts";
import { csiNodeInfos, oldDriversOf } from "./old-csi-node-info.ts";

/** The Node object is not there yet, so no CSINode can belong to it. */
export class NodeMissingError extends Error {
  override readonly name = "NodeMissingError";
}

/** Makes a write of a change, and says what follows it: `next`, by default the end of the change, or what a failure leads to. */
type Written = (
  observed: ObservedCsiNode,
  write: () => Promise<unknown>,
  next?: Next<ObservedCsiNode>,
) => Promise<Next<ObservedCsiNode>>;

const retryBackoff = { initialMs: 10, maximumMs: 1250, factor: 5, jitter: 0.1 };

/** Changes the CSINode of one node. */
export class CsiNodeWriter {
  readonly #env: RuntimeEnv & { readonly kube: KubeClient };
  readonly #nodeName: string;
  /** With what the drivers are registered that the CSINode lists because of this agent, by their names. */
  readonly #drivers = new Map<string, DriverInfo>();
  /** What the annotation is to list; undefined: not decided yet. */
  #migrated: ReadonlySet<string> | undefined;
  /**
   * What the first CSINode takes over; undefined: not read. Empty once there is a CSINode: one that is made after it was
   * deleted must not bring back what was removed from it.
   */
  #oldDrivers: readonly CSINodeDriver[] | undefined;
  /** As it was read last. */
  #node: Stored<Node> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(env: RuntimeEnv & { readonly kube: KubeClient }, nodeName: string) {
    this.#env = env;
    this.#nodeName = nodeName;
  }

  /** The object as it is now, by a live GET. */
  read(signal: AbortSignal): Promise<Stored<CSINode> | undefined> {
    return this.#env.kube.get(resources.csiNodes, { name: this.#nodeName }, { signal });
  }

  /**
   * Makes the annotation list exactly these plugins, now and with every later write. Entries of drivers that have registered are put back
   * where they are missing.
   */
  async setMigratedPlugins(plugins: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    this.#migrated = plugins;
    await this.#change({ kind: "publish" }, signal);
  }

  /** Adds the driver's entry or replaces it; an equal one stays. */
  setDriver(name: string, info: DriverInfo, signal: AbortSignal): Promise<void> {
    return this.#change({ kind: "setDriver", name, info }, signal, () => this.#drivers.set(name, info));
  }

  /** Removes the driver's entry; a missing entry or object is fine. */
  removeDriver(name: string, signal: AbortSignal): Promise<void> {
    return this.#change({ kind: "removeDriver", name }, signal, () => this.#drivers.delete(name));
  }

  /** One change at a time; `onDone` runs before the next begins. */
  async #change(change: CsiNodeChange, signal: AbortSignal, onDone?: () => unknown): Promise<void> {
    let attempts = 0;
    const written: Written = async (observed, write, next = settled) => {
      try {
        await write();
        return next;
      } catch (error) {
        return { observed: { ...observed, failure: { error, attempts: ++attempts } } };
      }
    };
    const run = this.#last.then(async () => {
      await walkSteps<ObservedCsiNode, CsiNodeStep>(
        {
          observe: () => this.#observe(change, signal),
          decide: decideCsiNodeStep,
          actions: this.#actions(written, signal),
        },
        { key: this.#nodeName, signal },
      );
      onDone?.();
    });
    this.#last = run.catch(() => {});
    await run;
  }

  async #observe(change: CsiNodeChange, signal: AbortSignal): Promise<ObservedCsiNode> {
    const stored = await this.read(signal);
    if (stored !== undefined) this.#oldDrivers = [];
    const isToBeMade = stored === undefined || isOfAnother(stored, this.#node);
    if (isToBeMade && change.kind !== "removeDriver") {
      this.#node = await this.#env.kube.get(resources.nodes, { name: this.#nodeName }, { signal });
      if (this.#node !== undefined) this.#oldDrivers ??= await this.#readOldDrivers(signal);
    }
    const oldDrivers = this.#oldDrivers ?? [];
    const said = { drivers: this.#drivers, migrated: this.#migrated };
    return { change, stored, node: this.#node, oldDrivers, ...said, failure: undefined };
  }

  /** A server without the resource, or one that does not let the node read it, has nothing to take over. */
  async #readOldDrivers(signal: AbortSignal): Promise<readonly CSINodeDriver[]> {
    const { kube, logger } = this.#env;
    const csiNodeInfo = this.#nodeName;
    try {
      // Asked for only where it is served: a node has no right to it otherwise.
      const isServed = (await kube.servedVersion(csiNodeInfos, { signal })) !== undefined;
      const stored = isServed ? await kube.get(csiNodeInfos, { name: csiNodeInfo }, { signal }) : undefined;
      if (stored === undefined) {
        logger.debug("no CSINodeInfo to take drivers over from", { csiNodeInfo });
        return [];
      }
      const old = oldDriversOf(stored);
      if ("drivers" in old) return old.drivers;
      logger.warn("a malformed CSINodeInfo is left alone: correct the field, or delete the object", {
        csiNodeInfo,
        malformed: old.malformed,
      });
    } catch (error) {
      // A kind that is not served any more is an error, unlike an object that is not there.
      if (!(error instanceof KubeApiError) || (error.code !== 404 && error.code !== 403)) throw error;
      logger.debug("CSINodeInfos are not served, or may not be read: no drivers are taken over", {
        csiNodeInfo,
        error: errorChain(error),
      });
    }
    return [];
  }

  #actions(written: Written, signal: AbortSignal): Actions<ObservedCsiNode, CsiNodeStep> {
    const { kube, clock, random, logger } = this.#env;
    return {
      create: ({ csiNode }, observed) =>
        written(observed, async () => {
          await kube.create(resources.csiNodes, csiNode, { signal });
          this.#oldDrivers = [];
        }),
      update: ({ csiNode }, observed) =>
        written(observed, () => kube.update(resources.csiNodes, csiNode, { signal })),
      removeOld: ({ uid }, observed) => {
        const ref = { name: this.#nodeName };
        return written(observed, () => kube.delete(resources.csiNodes, ref, { signal, uid }), observeAgain);
      },
      settle: () => settled,
      waitForNode: () => {
        throw new NodeMissingError(`Node ${this.#nodeName} does not exist: register it first`);
      },
      retry: async ({ attempts }) => {
        await clock.sleep(backoffMs(retryBackoff, attempts, random), signal);
        return observeAgain;
      },
      dropOldDrivers: ({ error }) => {
        logger.warn("drivers of the CSINodeInfo are not taken over: the CSINode is refused with them", {
          csiNodeInfo: this.#nodeName,
          error: errorChain(error),
        });
        this.#oldDrivers = [];
        return observeAgain;
      },
      fail: ({ error }) => {
        throw error;
      },
    };
  }
}
