/** What the steps of {@link decideClusterStep} do: one call each. */
import {
  type Actions,
  type EventRecorder,
  isConflict,
  type KubeClient,
  type KubeEnv,
  type KubeObject,
  type ListPage,
  resources,
  type Stored,
  settled,
  TerminalError,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import {
  annotationKeyControllerFinished,
  annotationKeyNeedsComplete,
  type Cluster,
  clusters,
  controlPlanes,
} from "./cluster.ts";
import type { ClusterObservation, ClusterStep } from "./decide-cluster-step.ts";
import type { NewClientForShoot } from "./shoot-client.ts";

/** A Cluster whose old nodes are not gone yet is looked at again after this time, in milliseconds. */
export const requeueAfterMs = 60_000;

/** What the actions work with. */
export interface ClusterActionsEnv extends KubeEnv {
  readonly newClientForShoot: NewClientForShoot;
  readonly events: EventRecorder;
}

const pageSize = 500;
/** Names of nodes in one log line. */
const namesMax = 5;

/** The actions. */
export function clusterActions(env: ClusterActionsEnv): Actions<ClusterObservation, ClusterStep> {
  const { kube, events, logger } = env;
  const setAnnotations = (cluster: Stored<Cluster>, keys: readonly string[], signal: AbortSignal) =>
    reported(env, cluster, "ClusterNotAnnotated", signal, () => annotate(kube, cluster, keys, signal));
  return {
    settle: () => settled,
    refuse({ message }, { cluster }) {
      events.event(cluster, "Warning", "InvalidShoot", message);
      throw new TerminalError(message);
    },
    refuseNode({ message }, { cluster }) {
      events.event(cluster, "Warning", "InvalidNode", message);
      throw new Error(message);
    },
    async readControlPlane({ namespace, name }, observed, { signal }) {
      const found = await kube.get(controlPlanes, { namespace, name }, { signal });
      return { observed: { ...observed, hasControlPlane: found !== undefined } };
    },
    async markNew(_, { cluster }, { signal }) {
      await setAnnotations(cluster, [annotationKeyNeedsComplete, annotationKeyControllerFinished], signal);
      return settled;
    },
    async listNodes(_, observed, { signal }) {
      const listed = await ofShoot(env, observed, signal, (shoot) =>
        everyPage((page) => shoot.list(resources.nodes, { ...page, signal })),
      );
      const nodes = listed.map(({ metadata, status }) => ({
        name: metadata.name,
        kubeletVersion: status?.nodeInfo?.kubeletVersion ?? "",
      }));
      return { observed: { ...observed, nodes } };
    },
    waitForNodes({ old }, { cluster }) {
      const nodes = old.slice(0, namesMax).join(", ") + (old.length > namesMax ? ", …" : "");
      logger.info("old nodes are still there", { cluster: cluster.metadata.name, count: old.length, nodes });
      return { requeueAfterMs };
    },
    async listClasses(_, observed, { signal }) {
      const listed = await ofShoot(env, observed, signal, (shoot) =>
        everyPage((page) => shoot.list(resources.storageClasses, { ...page, signal })),
      );
      const classes = listed.map(({ metadata: { name, uid }, provisioner }) => ({ name, uid, provisioner }));
      return { observed: { ...observed, classes } };
    },
    async deleteClass({ storageClass: { name, uid } }, observed, { signal }) {
      // With its UID: a class of that name that was made meanwhile is another's.
      await ofShoot(env, observed, signal, (shoot) =>
        shoot.delete(resources.storageClasses, { name }, { uid, signal }),
      );
      logger.info("legacy class deleted", { cluster: observed.cluster.metadata.name, class: name });
      const classes = (observed.classes ?? []).filter((one) => one.name !== name);
      return { observed: { ...observed, classes } };
    },
    async markNeedsComplete(_, observed, { signal }) {
      const cluster = await setAnnotations(observed.cluster, [annotationKeyNeedsComplete], signal);
      return { observed: { ...observed, cluster } };
    },
    async wakeDeployment({ name }, observed, { signal }) {
      const ref = { namespace: observed.cluster.metadata.name, name };
      await reported(env, observed.cluster, "ControlPlaneNotPatched", signal, () =>
        kube.patch(resources.deployments, ref, { type: "strategic", body: {} }, { signal }),
      );
      return { observed: { ...observed, woken: [...(observed.woken ?? []), name] } };
    },
    async markFinished(_, { cluster }, { signal }) {
      const stored = await setAnnotations(cluster, [annotationKeyControllerFinished], signal);
      events.event(stored, "Normal", "CSIMigrationFinished", "the migration to CSI is complete");
      return settled;
    },
  };
}

/** Sets annotations in one update, of the Cluster that was decided about: a conflict is retried with fresh state. */
function annotate(
  kube: KubeClient,
  cluster: Stored<Cluster>,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<Stored<Cluster>> {
  const added = Object.fromEntries(keys.map((key) => [key, "true"]));
  const annotations = { ...cluster.metadata.annotations, ...added };
  return kube.update(clusters, { ...cluster, metadata: { ...cluster.metadata, annotations } }, { signal });
}

function ofShoot<T>(
  env: ClusterActionsEnv,
  { cluster }: ClusterObservation,
  signal: AbortSignal,
  use: (shoot: KubeClient) => Promise<T>,
): Promise<T> {
  return reported(env, cluster, "ShootNotReached", signal, async () => {
    const shoot = await env.newClientForShoot(cluster.metadata.name, signal);
    try {
      return await use(shoot);
    } finally {
      await shoot.close();
    }
  });
}

/**
 * A failure is an event of the Cluster, too, since its operators do not read this log: a webhook that is down, a Deployment or a
 * kubeconfig that is missing. A conflict is none: fresh state follows at once.
 */
async function reported<T>(
  { events }: ClusterActionsEnv,
  cluster: Stored<Cluster>,
  reason: string,
  signal: AbortSignal,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!signal.aborted && !isConflict(error)) {
      events.event(cluster, "Warning", reason, `${errorChain(error)}: it is tried again`);
    }
    throw error;
  }
}

/** A page that expired in between (410) fails the pass, which begins with fresh state. */
async function everyPage<T extends KubeObject>(
  list: (page: { readonly limit: number; readonly continue?: string }) => Promise<ListPage<T>>,
): Promise<readonly Stored<T>[]> {
  const items: Stored<T>[] = [];
  let token: string | undefined;
  do {
    const page = await list({ limit: pageSize, ...(token === undefined ? {} : { continue: token }) });
    items.push(...page.items);
    token = page.continue;
  } while (token !== undefined);
  return items;
}
