/** All that a cluster says of one PersistentVolume: where it is, what keeps it, and what has happened. Lists only. */
import { type Event, type KubeClient, type KubeObject, resources, type Stored } from "@longshore/kube";
import { type Inventory, subjectOf } from "../assess/inventory.ts";
import { clusterStatusOf, type VolumeStatus } from "./cluster-status.ts";

/** Most events that a story has. */
const eventsMax = 50;

/** Something that happened to the volume, or to what uses it. */
export interface StoryEvent {
  /** When it was last seen, RFC 3339; empty where the event does not say. */
  readonly at: string;
  readonly type: string;
  /** e.g. `Pod default/writer-0`. */
  readonly object: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
}

/** The whole story of a volume. */
export interface VolumeStory extends VolumeStatus {
  /** For each object around the volume its finalizers, and since when it is being deleted. */
  readonly objects: readonly {
    readonly object: string;
    readonly finalizers: readonly string[];
    readonly deletingSince?: string;
  }[];
  /** The newest 50, oldest first. */
  readonly events: readonly StoryEvent[];
  /** What could not be read. */
  readonly gaps: readonly string[];
}

/** There is no such volume. */
export class UnknownVolumeError extends Error {
  override readonly name = "UnknownVolumeError";
}

/**
 * Reads the story of the volume named.
 * @throws UnknownVolumeError when the inventory has none of that name, and what the client throws
 */
export async function readVolumeStory(
  kube: KubeClient,
  inventory: Inventory,
  name: string,
  signal: AbortSignal,
): Promise<VolumeStory> {
  const { volumes, gaps } = clusterStatusOf(inventory);
  const volume = volumes.find((each) => each.name === name);
  const pv = inventory.volumes.find(({ metadata }) => metadata.name === name);
  if (volume === undefined || pv === undefined) {
    throw new UnknownVolumeError(
      `there is no PersistentVolume ${name} that can be read; \`longshore status\` lists all`,
    );
  }
  const objects = objectsAround(inventory, volume, pv);
  const seen: StoryEvent[] = [];
  for (const { kind, object } of objects) seen.push(...(await eventsOf(kube, kind, object, signal)));
  seen.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  return {
    ...volume,
    objects: objects.map(({ kind, object }) => {
      const { finalizers = [], deletionTimestamp } = object.metadata;
      const deleting = deletionTimestamp === undefined ? {} : { deletingSince: deletionTimestamp };
      return { object: subjectOf(kind, object), finalizers, ...deleting };
    }),
    events: seen.slice(-eventsMax),
    gaps,
  };
}

interface Around {
  readonly kind: string;
  readonly object: Stored<KubeObject>;
}

/** The volume, its claim, its attachments and the pods that use it. */
function objectsAround(inventory: Inventory, volume: VolumeStatus, pv: Stored<KubeObject>): Around[] {
  const named = ({ metadata }: Stored<KubeObject>) => `${metadata.namespace}/${metadata.name}`;
  const of = (kind: string, objects: readonly Stored<KubeObject>[]) =>
    objects.map((object) => ({ kind, object }));
  const pods = new Set(volume.uses.map(({ pod }) => pod));
  return [
    { kind: "PersistentVolume", object: pv },
    ...of(
      "PersistentVolumeClaim",
      inventory.claims.filter((claim) => named(claim) === volume.claim),
    ),
    ...of(
      "VolumeAttachment",
      inventory.attachments.filter(({ spec }) => spec.source.persistentVolumeName === pv.metadata.name),
    ),
    ...of(
      "Pod",
      inventory.pods.filter((pod) => pods.has(named(pod))),
    ),
  ];
}

async function eventsOf(
  kube: KubeClient,
  kind: string,
  { metadata }: Stored<KubeObject>,
  signal: AbortSignal,
): Promise<StoryEvent[]> {
  const { namespace, name, uid } = metadata;
  // An object of the same name that was there before has events of its own.
  const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name},involvedObject.uid=${uid}`;
  const { items } = await kube.list(resources.events, {
    ...(namespace === undefined ? {} : { namespace }),
    fieldSelector,
    signal,
  });
  return items.map((event) => ({
    at: timeOf(event),
    type: event.type ?? "Normal",
    object: subjectOf(kind, { metadata }),
    reason: event.reason ?? "",
    message: event.message ?? "",
    count: event.series?.count ?? event.count ?? 1,
  }));
}

/** Both generations of events are in use, each with fields of its own. */
function timeOf({ series, lastTimestamp, eventTime, metadata }: Stored<Event>): string {
  return series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? "";
}
