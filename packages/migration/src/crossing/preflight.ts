/**
 * What stands in the way of a crossing, found before anything is changed: a pure function of what
 * was observed. Each blocker names the object and the remedy.
 */
import type {
  CSINode,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Stored,
  Volume,
} from "@longshore/kube";
import {
  getInTreePluginNameFromSpec,
  isInlineMigratable,
  isPVMigratable,
  translateInTreeInlineVolumeToCSI,
  translateInTreePVToCSI,
} from "@longshore/translation";
import type { CrossingDirection, CrossingSubject } from "./subject.ts";

/** The cluster as the preflight sees it. */
export interface CrossingObservation {
  readonly nodes: readonly Stored<Node>[];
  readonly csiNodes: readonly Stored<CSINode>[];
  readonly pods: readonly Stored<Pod>[];
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly claims: readonly Stored<PersistentVolumeClaim>[];
}

/** Why the crossing cannot begin. */
export interface Blocker {
  /** e.g. `Pod default/agent-x`. */
  readonly object: string;
  readonly reason: string;
  readonly remedy: string;
}

/** Everything that stands in the way. */
export function findBlockers(
  subject: CrossingSubject,
  direction: CrossingDirection,
  seen: CrossingObservation,
  options: { readonly force?: boolean } = {},
): Blocker[] {
  return [
    ...(direction === "migrate" ? driverBlockers(subject, seen) : []),
    ...translationBlockers(subject, seen),
    ...podBlockers(subject, seen, options.force === true),
  ];
}

function driverBlockers(subject: CrossingSubject, seen: CrossingObservation): Blocker[] {
  return seen.nodes.flatMap((node) => {
    const csiNode = seen.csiNodes.find((c) => c.metadata.name === node.metadata.name);
    if (csiNode?.spec.drivers?.some((d) => d.name === subject.driverName) === true) return [];
    return {
      object: `Node ${node.metadata.name}`,
      reason: `the driver ${subject.driverName} is not registered there`,
      remedy: "deploy the driver's node part on every node and wait until its CSINode lists it",
    };
  });
}

function translationBlockers(subject: CrossingSubject, seen: CrossingObservation): Blocker[] {
  const blockers: Blocker[] = [];
  const attempt = (object: string, translate: () => unknown) => {
    try {
      translate();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      blockers.push({ object, reason, remedy: "correct the volume source, or take the volume out of use" });
    }
  };
  for (const pv of seen.volumes) {
    if (!isPVMigratable(pv) || getInTreePluginNameFromSpec(pv, null) !== subject.inTreeName) continue;
    attempt(`PersistentVolume ${pv.metadata.name}`, () => translateInTreePVToCSI(pv));
  }
  for (const pod of seen.pods) {
    for (const volume of inlineVolumesOf(subject, pod)) {
      attempt(`Pod ${nameOf(pod)}, volume ${volume.name}`, () =>
        translateInTreeInlineVolumeToCSI(volume, pod.metadata.namespace ?? "default"),
      );
    }
  }
  return blockers;
}

function podBlockers(subject: CrossingSubject, seen: CrossingObservation, force: boolean): Blocker[] {
  return seen.pods.flatMap((pod): Blocker[] => {
    if (pod.spec?.nodeName === undefined || hasEnded(pod)) return [];
    const kind = leftByDrain(pod);
    if (kind !== undefined) {
      if (!usesPlugin(subject, pod, seen) && !usesDriver(subject, pod, seen)) return [];
      return [
        {
          object: `Pod ${nameOf(pod)}`,
          reason: `a ${kind} pod on node ${pod.spec.nodeName} uses a volume of ${subject.inTreeName} or ${subject.driverName}, and a drain leaves it`,
          remedy: "move its volume to another pod, or delete the workload for the time of the crossing",
        },
      ];
    }
    // Whatever its volumes: a drain takes every pod of the node.
    const managed = pod.metadata.ownerReferences?.some((o) => o.controller === true) === true;
    if (managed || force) return [];
    return [
      {
        object: `Pod ${nameOf(pod)}`,
        reason: "it has no controller: evicted from its node, it would not come back",
        remedy: "run it under a controller, delete it, or pass --force to let it go",
      },
    ];
  });
}

/** Why a drain leaves the pod where it is, or undefined when it evicts it. */
export function leftByDrain(pod: Pod): "DaemonSet" | "mirror" | undefined {
  if (pod.metadata?.annotations?.["kubernetes.io/config.mirror"] !== undefined) return "mirror";
  const owner = pod.metadata?.ownerReferences?.find((o) => o.controller === true);
  return owner?.kind === "DaemonSet" ? "DaemonSet" : undefined;
}

/** True when the pod uses a volume of the plugin, bound or inline. */
export function usesPlugin(
  subject: CrossingSubject,
  pod: Stored<Pod>,
  seen: Pick<CrossingObservation, "claims" | "volumes">,
): boolean {
  if (inlineVolumesOf(subject, pod).length > 0) return true;
  return boundVolumesOf(pod, seen).some(
    (pv) => isPVMigratable(pv) && getInTreePluginNameFromSpec(pv, null) === subject.inTreeName,
  );
}

/** True when the pod uses a volume that was the driver's from the start: the node is not empty of it either. */
function usesDriver(
  subject: CrossingSubject,
  pod: Stored<Pod>,
  seen: Pick<CrossingObservation, "claims" | "volumes">,
): boolean {
  return boundVolumesOf(pod, seen).some((pv) => pv.spec?.csi?.driver === subject.driverName);
}

function boundVolumesOf(
  pod: Stored<Pod>,
  seen: Pick<CrossingObservation, "claims" | "volumes">,
): Stored<PersistentVolume>[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    const claimName = volume.persistentVolumeClaim?.claimName;
    if (claimName === undefined) return [];
    const claim = seen.claims.find(
      (c) => c.metadata.name === claimName && c.metadata.namespace === pod.metadata.namespace,
    );
    return seen.volumes.filter((v) => v.metadata.name === claim?.spec?.volumeName);
  });
}

function hasEnded(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

function inlineVolumesOf(subject: CrossingSubject, pod: Pod): Volume[] {
  return (pod.spec?.volumes ?? []).filter(
    (volume) =>
      isInlineMigratable(volume) && getInTreePluginNameFromSpec(null, volume) === subject.inTreeName,
  );
}

function nameOf(pod: Stored<Pod>): string {
  return `${pod.metadata.namespace ?? "default"}/${pod.metadata.name}`;
}
