/**
 * What one change of this node's CSINode writes: a driver's entry, with the migrated-plugins annotation as it is to be.
 *
 *     no CSINode ─► create, or waitForNode;  another content ─► update;  equal ─► settle
 *     a CSINode of a Node that was deleted ─► removeOld ─► create
 *     the write lost ─► retry (read again, decide again) ─► … ─► fail
 *     what an old CSINodeInfo says is refused ─► dropOldDrivers ─► create without it
 *
 * Invariants
 *  - Once it is decided what the annotation lists, no write leaves it otherwise.
 *  - Entries of other drivers stay as they are.
 *  - A CSINode is written only for a Node that exists, and belongs to it: one of a Node that was deleted goes with that one, and with it what
 *    the annotation lists, although an agent counts on it. What its CSINodeInfo says keeps no node from getting one.
 * Source: docs/behaviour/node-agent.md 2.
 */
import {
  type CSINode,
  type CSINodeDriver,
  isAlreadyExists,
  isConflict,
  isInvalid,
  type Node,
  type Stored,
} from "@longshore/kube";
import type { DriverInfo } from "./driver-info.ts";
import { withMigratedPlugins } from "./migrated-plugins.ts";

/** Most CSINode.spec.drivers[].allocatable.count can say. */
const largestCount = 2_147_483_647;
/** A change whose write loses this often fails. */
const attemptsMax = 4;

/** What a change is to reach. */
export type CsiNodeChange =
  | { readonly kind: "setDriver"; readonly name: string; readonly info: DriverInfo }
  | { readonly kind: "removeDriver"; readonly name: string }
  /** The annotation, and the entries of the drivers that have registered: another may have written, or an older object was restored. */
  | { readonly kind: "publish" };

/** This node's CSINode as a change sees it, by live readings. */
export interface ObservedCsiNode {
  readonly change: CsiNodeChange;
  readonly stored: Stored<CSINode> | undefined;
  /** As it was read last: again where there is no CSINode, or one of another Node. */
  readonly node: Stored<Node> | undefined;
  /** What a CSINode that is made takes over from the node's CSINodeInfo. */
  readonly oldDrivers: readonly CSINodeDriver[];
  /** What this agent's drivers have registered with, by their names. */
  readonly drivers: ReadonlyMap<string, DriverInfo>;
  /** What the annotation is to list; undefined: not decided yet, so it is left as it is. */
  readonly migrated: ReadonlySet<string> | undefined;
  /** The write that has just failed; `attempts`: how many of this change have. */
  readonly failure: { readonly error: unknown; readonly attempts: number } | undefined;
}

/** What comes next in a change. */
export type CsiNodeStep =
  | { readonly step: "create"; readonly csiNode: CSINode }
  | { readonly step: "update"; readonly csiNode: CSINode }
  | { readonly step: "settle" }
  /** There is no Node that a CSINode could belong to: the caller tries again later. */
  | { readonly step: "waitForNode" }
  /** Delete the CSINode of a Node that was deleted: the garbage collector has not come to it yet. */
  | { readonly step: "removeOld"; readonly uid: string }
  /** Read and decide again after the pause that follows so many attempts. */
  | { readonly step: "retry"; readonly attempts: number }
  /** Make the CSINode without what the CSINodeInfo says: the server refuses it. */
  | { readonly step: "dropOldDrivers"; readonly error: unknown }
  | { readonly step: "fail"; readonly error: unknown };

/** Decides for a change; pure. */
export function decideCsiNodeStep(observed: ObservedCsiNode): CsiNodeStep {
  const { change, stored, node, oldDrivers, migrated, failure } = observed;
  if (failure !== undefined) return afterFailure(failure, oldDrivers);
  if (stored === undefined) {
    if (change.kind === "removeDriver") return { step: "settle" };
    if (node === undefined) return { step: "waitForNode" };
    const csiNode = withAnnotation(changed(newCsiNode(node, oldDrivers), observed), migrated);
    return { step: "create", csiNode };
  }
  if (change.kind !== "removeDriver" && isOfAnother(stored, node)) {
    return node === undefined ? { step: "waitForNode" } : { step: "removeOld", uid: stored.metadata.uid };
  }
  const csiNode = withAnnotation(changed(stored, observed), migrated);
  return csiNode === stored ? { step: "settle" } : { step: "update", csiNode };
}

/** Whether the CSINode belongs to another Node than this one; one without an owner belongs to whichever there is. Pure. */
export function isOfAnother(csiNode: CSINode, node: Stored<Node> | undefined): boolean {
  const owners = (csiNode.metadata?.ownerReferences ?? []).filter(({ kind }) => kind === "Node");
  return owners.length > 0 && owners.every(({ uid }) => uid !== node?.metadata.uid);
}

/** Only a write that lost against another is repeated, and a refused one whose old drivers may be the reason, without them. */
function afterFailure(
  { error, attempts }: NonNullable<ObservedCsiNode["failure"]>,
  oldDrivers: ObservedCsiNode["oldDrivers"],
): CsiNodeStep {
  if (isInvalid(error) && oldDrivers.length > 0) return { step: "dropOldDrivers", error };
  const isLost = isConflict(error) || isAlreadyExists(error);
  return isLost && attempts < attemptsMax ? { step: "retry", attempts } : { step: "fail", error };
}

function changed(csiNode: CSINode, { change, drivers }: ObservedCsiNode): CSINode {
  switch (change.kind) {
    case "setDriver":
      return withDriver(csiNode, change.name, change.info);
    case "removeDriver":
      return withoutDriver(csiNode, change.name);
    case "publish":
      return [...drivers].reduce((node, [name, info]) => withDriver(node, name, info), csiNode);
  }
}

function withAnnotation(csiNode: CSINode, migrated: ReadonlySet<string> | undefined): CSINode {
  return migrated === undefined ? csiNode : withMigratedPlugins(csiNode, migrated);
}

function newCsiNode({ metadata: { name, uid } }: Stored<Node>, drivers: readonly CSINodeDriver[]): CSINode {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "CSINode",
    metadata: { name, ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }] },
    spec: { drivers: [...drivers] },
  };
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
