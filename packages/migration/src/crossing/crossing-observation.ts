/** The cluster as the preflight sees it, and how it is read. */
import {
  type CSINode,
  type Event,
  type KubeClient,
  type Lease,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type PodDisruptionBudget,
  resources,
  type Stored,
  type VolumeAttachment,
} from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { listBudgets } from "./list-budgets.ts";

/** The cluster as the preflight sees it. */
export interface CrossingObservation {
  /** When it was looked at. */
  readonly now: Date;
  readonly nodes: readonly Stored<Node>[];
  readonly csiNodes: readonly Stored<CSINode>[];
  readonly pods: readonly Stored<Pod>[];
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly claims: readonly Stored<PersistentVolumeClaim>[];
  readonly budgets: readonly Stored<PodDisruptionBudget>[];
  readonly attachments: readonly Stored<VolumeAttachment>[];
  /** Warnings about pods. */
  readonly events: readonly Stored<Event>[];
  readonly leases: readonly Stored<Lease>[];
}

/** Looks at the whole cluster. */
export async function observe(
  env: { readonly clock: Pick<Clock, "now">; readonly kube: KubeClient },
  signal: AbortSignal,
): Promise<CrossingObservation> {
  const { kube } = env;
  const warnings = "type=Warning,involvedObject.kind=Pod";
  const [nodes, csiNodes, pods, volumes, claims, budgets, attachments, events, leases] = await Promise.all([
    kube.list(resources.nodes, { signal }),
    kube.list(resources.csiNodes, { signal }),
    kube.list(resources.pods, { signal }),
    kube.list(resources.persistentVolumes, { signal }),
    kube.list(resources.persistentVolumeClaims, { signal }),
    listBudgets(kube, signal),
    kube.list(resources.volumeAttachments, { signal }),
    kube.list(resources.events, { fieldSelector: warnings, signal }),
    kube.list(resources.leases, { signal }),
  ]);
  return {
    now: env.clock.now(),
    nodes: nodes.items,
    csiNodes: csiNodes.items,
    pods: pods.items,
    volumes: volumes.items,
    claims: claims.items,
    budgets,
    attachments: attachments.items,
    events: events.items,
    leases: leases.items,
  };
}
