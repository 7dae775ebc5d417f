/**
 * Follows a cluster and publishes its picture {@link pauseMs} after a change, with all that has changed until then: at most
 * one picture in that time.
 */
import {
  type Event,
  type KubeEnv,
  type KubeObject,
  type Lease,
  type Pod,
  resources,
  type SharedInformers,
  type Stored,
  sharedInformers,
} from "@longshore/kube";
import type { CrossingStatus } from "@longshore/migration";
import { type Component, periodically, TaskGroup, type Timer } from "@longshore/runtime";
import { apiServer, followContact } from "./contact.ts";
import { crossingStateOf } from "./crossing-state.ts";
import { type DashboardFacts, dashboardStateOf } from "./dashboard-state.ts";
import { nodeLeases, nodeReports } from "./node-reports.ts";
import type { CrossingState, DashboardState } from "./state.ts";

/** A running feed. */
export interface StateFeed extends Component {
  /** The newest picture, as JSON. */
  latest(): string;
  /** Calls `listener` with every new picture; returns a function that unsubscribes. */
  subscribe(listener: (json: string) => void): () => void;
}

const pauseMs = 100;

/** What passes with time alone (a node that falls silent, a crossing that goes on) is looked at so often. */
const lookMs = 1000;

/** The state of the crossing, from its journal; undefined where no crossing is known. */
export type ReadCrossing = () => Promise<CrossingStatus | undefined>;

/**
 * Starts following; returns at once, with a picture that says it is not complete. A server that is unreachable is no error:
 * the picture says what is stale, and since when. `readCrossing` is asked every second; what it throws is logged.
 */
export function startStateFeed(env: KubeEnv, readCrossing: ReadCrossing = async () => undefined): StateFeed {
  const reports = nodeReports(env.clock);
  let wasAway = false;
  const contact = followContact(env, () => {
    // What was not heard while the server was away says nothing of the nodes.
    if (wasAway && !isAway()) reports.forgive();
    wasAway = isAway();
    changed();
  });
  function isAway(): boolean {
    return contact.stale().some(({ source }) => source === apiServer || source === "leases");
  }
  const informers = sharedInformers({ ...env, kube: contact.kube });
  const lists = listsOf(informers);
  const listeners = new Set<(json: string) => void>();
  let crossing: CrossingState | undefined;
  /** Since when nodes have been silent; while the server is unreachable, as it was before. */
  let silent: ReadonlyMap<string, string> = new Map();
  const picture = () =>
    JSON.stringify(
      pictureOf(lists, {
        complete: Object.values(lists).every((informer) => informer.hasSynced()),
        stale: contact.stale(),
        crossing,
        silentSince: (node) => silent.get(node.metadata.name),
      }),
    );
  let timer: Timer | undefined;
  let stopped = false;
  let current = picture();

  const publish = () => {
    timer = undefined;
    const next = picture();
    if (next === current) return;
    current = next;
    for (const listener of listeners) listener(next);
  };
  function changed(): void {
    if (!stopped) timer ??= env.clock.timer(pauseMs, publish);
  }
  const tasks = new TaskGroup((error) => env.logger.error("the look at the crossing failed", { error }));
  tasks.spawn((signal) =>
    periodically(env, { name: "crossing", periodMs: lookMs }, signal, async () => {
      const status = await readCrossing();
      const next = status === undefined ? undefined : crossingStateOf(status);
      if (JSON.stringify(next) === JSON.stringify(crossing)) return;
      crossing = next;
      changed();
    }),
  );
  // Leases are renewed all the time: only that one is not changes the picture.
  const leases = informers.of(resources.leases, { namespace: nodeLeases, transform: shrinkLease });
  leases.onChange({
    added: (lease) => reports.renewed(lease),
    updated: (_, lease) => reports.renewed(lease),
    deleted: (lease) => reports.removed(lease),
  });
  tasks.spawn((signal) =>
    periodically(env, { name: "node reports", periodMs: lookMs }, signal, async () => {
      if (isAway()) return;
      const found = lists.nodes
        .list()
        .map((node) => [node.metadata.name, reports.silentSince(node)] as const)
        .filter((entry): entry is [string, string] => entry[1] !== undefined);
      if (JSON.stringify(found) === JSON.stringify([...silent])) return;
      silent = new Map(found);
      changed();
    }),
  );
  for (const informer of Object.values(lists)) {
    informer.onChange({ added: changed, updated: changed, deleted: changed });
  }
  // An empty list causes no change event, but it completes the picture.
  informers.synced(new AbortController().signal).then(changed, () => {});

  return {
    latest: () => current,
    subscribe(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    async stop() {
      stopped = true;
      timer?.cancel();
      await tasks.stop();
      await informers.stop();
      await contact.stop();
    },
  };
}

function listsOf(informers: SharedInformers) {
  return {
    nodes: informers.of(resources.nodes),
    csiNodes: informers.of(resources.csiNodes),
    pods: informers.of(resources.pods, { transform: shrinkPod }),
    volumes: informers.of(resources.persistentVolumes),
    attachments: informers.of(resources.volumeAttachments, { transform: shrinkAttachment }),
    events: informers.of(resources.events, { transform: shrinkEvent }),
  };
}

function pictureOf(lists: ReturnType<typeof listsOf>, facts: DashboardFacts): DashboardState {
  return dashboardStateOf(
    {
      nodes: lists.nodes.list(),
      csiNodes: lists.csiNodes.list(),
      pods: lists.pods.list(),
      volumes: lists.volumes.list(),
      attachments: lists.attachments.list(),
      events: lists.events.list(),
    },
    facts,
  );
}

/** Keeps only the renewal time of a Lease. */
function shrinkLease(lease: Stored<Lease>): Stored<Lease> {
  const renewTime = lease.spec?.renewTime;
  return { ...lease, spec: renewTime === undefined ? {} : { renewTime } };
}

/** Containers and their environments are not part of the picture and may hold secrets. */
function shrinkPod(pod: Stored<Pod>): Stored<Pod> {
  const { containers: _containers, initContainers: _initContainers, ...spec } = pod.spec ?? {};
  return { ...pod, spec: { ...spec, containers: [] } };
}

/** `attachmentMetadata` may hold what a driver keeps to itself. */
function shrinkAttachment<T extends KubeObject & { status?: { attachmentMetadata?: unknown } }>(va: T): T {
  if (va.status?.attachmentMetadata === undefined) return va;
  const { attachmentMetadata: _metadata, ...status } = va.status;
  return { ...va, status };
}

function shrinkEvent(event: Stored<Event>): Stored<Event> {
  const message = event.message ?? "";
  return message.length <= 1000 ? event : { ...event, message: `${message.slice(0, 999)}…` };
}
