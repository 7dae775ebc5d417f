/** Everything that changes what a pod wants attached, and by which path. Source: docs/behaviour/controllers.md A3, A5. */
import {
  keyOf,
  type Node,
  type PersistentVolume,
  type Pod,
  type Source,
  type Stored,
  source,
} from "@longshore/kube";
import {
  type AttachDetachContext,
  cacheIndexes,
  keepTerminatedAnnotation,
  managedNodeAnnotation,
} from "../attach-detach-context.ts";
import { hasPodStopped } from "../build-pod-volume.ts";
import { onLaterChange } from "../caches.ts";

/** All of them. A pod that they wake is pending until it is decided; every pod that is there is woken once, by its own source. */
export function podSources(context: AttachDetachContext): readonly Source[] {
  return [
    ofPods(context),
    ofNodes(context),
    ofClaims(context),
    ofVolumes(context),
    ofCsiNodes(context),
    ofCsiDrivers(context),
    ofVolumeAttachments(context),
  ];
}

function ofPods(context: AttachDetachContext): Source {
  const wake = (pod: Stored<Pod>) => context.wakePod(keyOf(pod));
  return source(() =>
    context.caches.pods.onChange({
      // Those of the first list do not keep a pod that comes now waiting.
      added: (pod, { initial }) => context.wakePod(keyOf(pod), initial ? "background" : "fresh"),
      updated: (before, after) => {
        if (changesDemand(before, after)) wake(after);
      },
      deleted: wake,
    }),
  );
}

/** Whether the change of a pod affects what it wants; the rest of its status does not. */
function changesDemand(before: Stored<Pod>, after: Stored<Pod>): boolean {
  return (
    before === after ||
    before.spec?.nodeName !== after.spec?.nodeName ||
    before.spec?.volumes?.length !== after.spec?.volumes?.length ||
    hasPodStopped(before) !== hasPodStopped(after)
  );
}

function ofNodes(context: AttachDetachContext): Source {
  const managedAs = ({ metadata: { annotations } }: Stored<Node>) =>
    `${annotations?.[managedNodeAnnotation] !== undefined} ${annotations?.[keepTerminatedAnnotation]}`;
  return source(() =>
    onLaterChange(context.caches.nodes, {
      added: ({ metadata }) => wakePodsOn(context, metadata.name),
      updated: (before, after) => {
        if (managedAs(before) !== managedAs(after)) wakePodsOn(context, after.metadata.name);
      },
    }),
  );
}

function ofClaims(context: AttachDetachContext): Source {
  const wake = (claim: Stored) => wakePodsOfClaim(context, keyOf(claim));
  return source(() =>
    onLaterChange(context.caches.claims, {
      added: wake,
      updated: (_before, after) => wake(after),
      deleted: wake,
    }),
  );
}

function ofVolumes(context: AttachDetachContext): Source {
  const wake = ({ spec }: Stored<PersistentVolume>) => {
    const claim = spec?.claimRef;
    if (claim != null) wakePodsOfClaim(context, `${claim.namespace}/${claim.name}`);
  };
  return source(() =>
    onLaterChange(context.caches.volumes, {
      added: wake,
      updated(before, after) {
        if (before.spec?.claimRef?.uid !== after.spec?.claimRef?.uid) wake(before);
        wake(after);
      },
      deleted: wake,
    }),
  );
}

/** Who attaches on the node is decided again. */
function ofCsiNodes(context: AttachDetachContext): Source {
  const { csiNodeVersions } = context;
  const wake = ({ metadata: { name } }: Stored) => {
    csiNodeVersions.set(name, (csiNodeVersions.get(name) ?? 0) + 1);
    wakePodsOn(context, name);
  };
  return source(() =>
    onLaterChange(context.caches.csiNodes, {
      added: wake,
      updated: (_before, after) => wake(after),
      deleted: wake,
    }),
  );
}

/** Whether a driver needs an attach at all: a rare change, which may concern every pod. */
function ofCsiDrivers(context: AttachDetachContext): Source {
  const wakeAll = () => {
    for (const pod of context.caches.pods.list()) context.wakePod(keyOf(pod));
  };
  return source(() =>
    onLaterChange(context.caches.csiDrivers, { added: wakeAll, updated: wakeAll, deleted: wakeAll }),
  );
}

/** A missing CSINode is decided by whether the driver has VolumeAttachments on the node. */
function ofVolumeAttachments(context: AttachDetachContext): Source {
  return source(() =>
    context.caches.attachments.onChange({
      deleted: ({ spec }) => {
        for (const key of context.desired.undecidedPodsOn(spec.nodeName)) context.wakePod(key);
      },
    }),
  );
}

function wakePodsOn({ caches, wakePod }: AttachDetachContext, nodeName: string): void {
  for (const pod of caches.pods.byIndex(cacheIndexes.podsByNode, nodeName)) wakePod(keyOf(pod));
}

function wakePodsOfClaim({ caches, wakePod }: AttachDetachContext, claimKey: string): void {
  for (const pod of caches.pods.byIndex(cacheIndexes.podsByClaim, claimKey)) wakePod(keyOf(pod));
}
