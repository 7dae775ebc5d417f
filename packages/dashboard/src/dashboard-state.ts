/** The picture of a cluster: a pure function of its objects. */
import type { CSINode, Event, Node, PersistentVolume, Pod, Stored, VolumeAttachment } from "@longshore/kube";
import { isDeleting } from "@longshore/kube";
import { isCordonedForCrossing, migratedPluginsOf } from "@longshore/migration";
import { eventStatesOf } from "./event-state.ts";
import {
  type AttachmentState,
  type CrossingState,
  type DashboardState,
  listMax,
  type NodeState,
  type PluginState,
  type PodState,
  type StaleSource,
} from "./state.ts";
import {
  type KnownVolume,
  knownVolumesOf,
  nodeVolumeOf,
  podsOfClaims,
  volumeStateOf,
} from "./volume-state.ts";

/** What the picture is made from. */
export interface DashboardObjects {
  readonly nodes: readonly Stored<Node>[];
  readonly csiNodes: readonly Stored<CSINode>[];
  readonly pods: readonly Stored<Pod>[];
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly attachments: readonly Stored<VolumeAttachment>[];
  readonly events: readonly Stored<Event>[];
}

/** Facts for the picture that are not in the objects. */
export interface DashboardFacts {
  /** Every list has come in. */
  readonly complete: boolean;
  readonly stale: readonly StaleSource[];
  readonly crossing: CrossingState | undefined;
  /** Since when a node has given no sign of life. */
  silentSince(node: Stored<Node>): string | undefined;
}

/** The picture; the same objects in any order give the same one. */
export function dashboardStateOf(objects: DashboardObjects, facts: DashboardFacts): DashboardState {
  const known = knownVolumesOf(objects.volumes);
  const seen = { ...objects, podsOfClaims: podsOfClaims(byName(objects.pods)) };
  const nodes = byName(objects.nodes).slice(0, listMax);
  return {
    complete: facts.complete,
    stale: facts.stale,
    ...(facts.crossing === undefined ? {} : { crossing: facts.crossing }),
    plugins: pluginStatesOf(objects, known),
    nodes: nodes.map((node) => nodeStateOf(node, objects, known, facts.silentSince(node))),
    pendingPods: byName(objects.pods)
      .filter((pod) => pod.spec?.nodeName === undefined)
      .slice(0, listMax)
      .map(podStateOf),
    volumes: known.slice(0, listMax).map((volume) => volumeStateOf(volume, seen)),
    attachments: byName(objects.attachments).slice(0, listMax).map(attachmentStateOf),
    events: eventStatesOf(objects.events),
    totals: {
      nodes: objects.nodes.length,
      pods: objects.pods.length,
      volumes: objects.volumes.length,
      attachments: objects.attachments.length,
    },
  };
}

/** Plugins that a node has migrated or that a volume is written for. */
function pluginStatesOf(objects: DashboardObjects, known: readonly KnownVolume[]): PluginState[] {
  const migratedOn = new Map<string, number>();
  for (const { form } of known) if (form.kind === "in-tree") migratedOn.set(form.plugin, 0);
  const nodeNames = new Set(objects.nodes.map((node) => node.metadata.name));
  for (const csiNode of objects.csiNodes) {
    if (!nodeNames.has(csiNode.metadata.name)) continue;
    for (const plugin of migratedPluginsOf(csiNode)) {
      migratedOn.set(plugin, (migratedOn.get(plugin) ?? 0) + 1);
    }
  }
  return [...migratedOn]
    .sort(([a], [b]) => compare(a, b))
    .map(([name, nodesMigrated]) => ({ name, nodesMigrated, nodes: objects.nodes.length }));
}

function nodeStateOf(
  node: Stored<Node>,
  objects: DashboardObjects,
  known: readonly KnownVolume[],
  silentSince: string | undefined,
): NodeState {
  const { name } = node.metadata;
  const csiNode = objects.csiNodes.find((candidate) => candidate.metadata.name === name);
  const attached = (node.status?.volumesAttached ?? []).map((volume) => volume.name);
  return {
    name,
    zone: node.metadata.labels?.["topology.kubernetes.io/zone"] ?? "",
    ready: readinessOf(node),
    silentSince: silentSince ?? "",
    cordon:
      node.spec?.unschedulable !== true ? "none" : isCordonedForCrossing(node) ? "crossing" : "administrator",
    migratedPlugins: migratedPluginsOf(csiNode).sort(compare),
    drivers: (csiNode?.spec.drivers ?? []).map((driver) => driver.name).sort(compare),
    attached: attached.sort(compare).map((volume) => nodeVolumeOf(volume, known)),
    inUse: [...(node.status?.volumesInUse ?? [])].sort(compare).map((volume) => nodeVolumeOf(volume, known)),
    pods: byName(objects.pods)
      .filter((pod) => pod.spec?.nodeName === name)
      .slice(0, listMax)
      .map(podStateOf),
  };
}

function readinessOf(node: Node): NodeState["ready"] {
  const status = node.status?.conditions?.find((condition) => condition.type === "Ready")?.status;
  return status === "True" || status === "False" ? status : "Unknown";
}

function podStateOf(pod: Stored<Pod>): PodState {
  return {
    name: fullName(pod.metadata.namespace, pod.metadata.name),
    phase: isDeleting(pod) ? "Terminating" : (pod.status?.phase ?? "Pending"),
    ready: pod.status?.conditions?.some((c) => c.type === "Ready" && c.status === "True") === true,
    claims: (pod.spec?.volumes ?? []).flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? []),
  };
}

function attachmentStateOf(va: Stored<VolumeAttachment>): AttachmentState {
  const error = isDeleting(va) ? va.status?.detachError : va.status?.attachError;
  const settled = va.status?.attached === true ? "attached" : "attaching";
  return {
    name: va.metadata.name,
    driver: va.spec.attacher,
    node: va.spec.nodeName,
    volume: va.spec.source.persistentVolumeName ?? "inline",
    phase: error !== undefined ? "failed" : isDeleting(va) ? "detaching" : settled,
    error: error?.message ?? "",
  };
}

function byName<T extends Stored>(objects: readonly T[]): T[] {
  return [...objects].sort(
    (a, b) =>
      compare(a.metadata.namespace ?? "", b.metadata.namespace ?? "") ||
      compare(a.metadata.name, b.metadata.name),
  );
}

function fullName(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
