/**
 * The node watcher of the health monitor: when a node fails or recovers, it sends events on the driver's claims whose
 * pods are on it. Key: the node's name.
 */
import {
  type Controller,
  type EventRecorder,
  type Informer,
  type Node,
  type PersistentVolume,
  type Pod,
  type Source,
  settled,
  startController,
  type Wake,
} from "@longshore/kube";
import type { RuntimeEnv } from "@longshore/runtime";
import type { Driver } from "../common/sidecar-env.ts";
import { decideNodeStep, type NodeMemory, type NodeStep, type ObservedNode } from "./decide-node-step.ts";
import { monitoredVolume } from "./monitored-volume.ts";
import { nodeEvent } from "./node-event.ts";

/** What the watcher works with. */
export interface NodeWatcherContext {
  readonly env: RuntimeEnv;
  readonly driver: Pick<Driver, "name">;
  readonly events: Pick<EventRecorder, "event">;
  readonly volumes: Pick<Informer<PersistentVolume>, "list">;
  readonly pods: Pick<Informer<Pod>, "byIndex">;
  readonly nodes: Pick<Informer<Node>, "get" | "list" | "synced">;
}

/** Looks at all nodes once a period, in milliseconds, until it is stopped. */
export function startNodeWatcher(context: NodeWatcherContext, periodMs: number): Controller {
  const { env, nodes } = context;
  const known = new Map<string, NodeMemory>();
  const remember = (name: string, memory: NodeMemory | undefined) => {
    if (memory === undefined) known.delete(name);
    else known.set(name, memory);
    return settled;
  };
  return startController<ObservedNode, NodeStep>(env, {
    name: "node_health",
    sources: [inPeriods(nodes, () => known.keys())],
    resyncMs: periodMs,
    observe: (name) => {
      const [node, memory] = [nodes.get(name), known.get(name)];
      if (node === undefined && memory === undefined) return undefined;
      return { node, memory, nowMs: env.clock.monotonicMs() };
    },
    decide: decideNodeStep,
    actions: {
      reportFailed: ({ memory }, _observed, { key }) => {
        emitOnClaims(context, key, "failed");
        return remember(key, memory);
      },
      reportRecovered: ({ memory }, _observed, { key }) => {
        emitOnClaims(context, key, "recovered");
        return remember(key, memory);
      },
      remember: ({ memory }, _observed, { key }) => remember(key, memory),
    },
  });
}

/** All nodes at the start and at each resync, also those `known` that are gone since. No change of a node wakes it. */
function inPeriods(nodes: NodeWatcherContext["nodes"], known: () => Iterable<string>): Source {
  const wakeAll = (wake: Wake) => {
    const names = nodes.list().map(({ metadata }) => metadata.name);
    for (const name of new Set([...known(), ...names])) wake(name);
  };
  return {
    caches: [nodes],
    subscribe({ wake }) {
      wakeAll(wake);
      return () => {};
    },
    resync: wakeAll,
  };
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
