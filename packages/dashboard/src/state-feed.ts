/**
 * Follows a cluster and tells its picture whenever it has changed: at once at first, then not more
 * often than every {@link pauseMs}, however much happens.
 */
import {
  type Event,
  type KubeEnv,
  type KubeObject,
  type Pod,
  resources,
  type SharedInformers,
  type Stored,
  sharedInformers,
} from "@longshore/kube";
import type { Component, Timer } from "@longshore/runtime";
import { dashboardStateOf } from "./dashboard-state.ts";
import type { DashboardState } from "./state.ts";

/** A running feed. */
export interface StateFeed extends Component {
  /** The newest picture, as JSON. */
  latest(): string;
  /** Tells every new picture from now on; gives the way to end it. */
  subscribe(listener: (json: string) => void): () => void;
}

const pauseMs = 100;

/** Starts following. */
export function startStateFeed(env: KubeEnv): StateFeed {
  const informers = sharedInformers(env);
  const lists = listsOf(informers);
  const listeners = new Set<(json: string) => void>();
  let current = JSON.stringify(pictureOf(lists));
  let timer: Timer | undefined;
  let stopped = false;

  const publish = () => {
    timer = undefined;
    const next = JSON.stringify(pictureOf(lists));
    if (next === current) return;
    current = next;
    for (const listener of listeners) listener(next);
  };
  const changed = () => {
    if (!stopped) timer ??= env.clock.timer(pauseMs, publish);
  };
  for (const informer of Object.values(lists)) {
    informer.onChange({ added: changed, updated: changed, deleted: changed });
  }
  // A list that comes in empty tells nothing, but it completes the picture.
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
      await informers.stop();
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

function pictureOf(lists: ReturnType<typeof listsOf>): DashboardState {
  const complete = Object.values(lists).every((informer) => informer.hasSynced());
  return dashboardStateOf(
    {
      nodes: lists.nodes.list(),
      csiNodes: lists.csiNodes.list(),
      pods: lists.pods.list(),
      volumes: lists.volumes.list(),
      attachments: lists.attachments.list(),
      events: lists.events.list(),
    },
    complete,
  );
}

/** Containers and their environments are no part of the picture and may hold what nobody should see. */
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
