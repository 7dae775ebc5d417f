/**
 * The node watcher of the health monitor: when a node fails or recovers, it sends events on the driver's claims whose
 * pods are on it.
 */
import type { ComponentScope, EventRecorder, Informer, Node, PersistentVolume, Pod } from "@longshore/kube";
import { periodically, type RuntimeEnv } from "@longshore/runtime";
import type { Driver } from "../common/env.ts";
import { monitoredVolume } from "./monitored-volume.ts";
import { lookAtNode, type NodeMemory, nodeEvent } from "./node-step.ts";

/** What the watcher works with. */
export interface NodeWatcherContext {
  readonly env: RuntimeEnv;
  readonly driver: Pick<Driver, "name">;
  readonly events: Pick<EventRecorder, "event">;
  readonly volumes: Pick<Informer<PersistentVolume>, "list">;
  readonly pods: Pick<Informer<Pod>, "byIndex">;
  readonly nodes: Pick<Informer<Node>, "get" | "list">;
}

/** Looks at all nodes once a period, in milliseconds, until `scope` is stopped. */
export function watchNodes(context: NodeWatcherContext, periodMs: number, scope: ComponentScope): void {
  const memory = new Map<string, NodeMemory>();
  scope.spawn((signal) =>
    periodically(context.env, { name: "looking after nodes", periodMs }, signal, async () =>
      lookAtNodes(context, memory),
    ),
  );
}

function lookAtNodes(context: NodeWatcherContext, memory: Map<string, NodeMemory>): void {
  const nowMs = context.env.clock.monotonicMs();
  const names = new Set([...memory.keys(), ...context.nodes.list().map(({ metadata }) => metadata.name)]);
  for (const name of names) {
    const node = context.nodes.get(name);
    const look = lookAtNode(node, memory.get(name), nowMs);
    if (look.report !== undefined) emitOnClaims(context, name, look.report);
    // A deleted node that was reported needs no memory; a new node of its name starts without one.
    if (node === undefined) memory.delete(name);
    else memory.set(name, look.memory);
  }
}

function emitOnClaims(
  { volumes, pods, driver, events }: NodeWatcherContext,
  nodeName: string,
  report: "failed" | "recovered",
): void {
  for (const pv of volumes.list()) {
    const claim = monitoredVolume(pv, driver.name)?.claim;
    if (claim === undefined) continue;
    const using = pods.byIndex("byClaim", `${claim.namespace}/${claim.name}`);
    const there = using.filter((pod) => pod.spec?.nodeName === nodeName);
    if (there.length === 0) continue;
    const event = nodeEvent(report, nodeName, claim, there);
    events.event(claim, event.type, event.reason, event.message);
  }
}
