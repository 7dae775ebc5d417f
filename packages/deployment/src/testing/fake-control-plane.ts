/**
 * Plays the controllers of workloads and the kubelets for a deployment, one step at a time: pods come and go, statuses
 * follow, and the driver is registered on nodes where it runs.
 */
import {
  type DaemonSet,
  type Deployment,
  isNotFound,
  type KubeClient,
  type ObjectRef,
  type Pod,
  type Resource,
  resources,
  type StatefulSet,
  type Stored,
} from "@longshore/kube";

type Workload = Stored<DaemonSet> | Stored<StatefulSet> | Stored<Deployment>;

/** How the plane behaves. */
export interface FakePlaneOptions {
  /** Nodes whose kubelet does nothing. */
  readonly silentNodes?: ReadonlySet<string>;
}

/** One step of all controllers and kubelets. */
export async function stepControlPlane(
  admin: KubeClient,
  driver: string,
  signal: AbortSignal,
  { silentNodes = new Set() }: FakePlaneOptions = {},
): Promise<void> {
  const nodes = (await admin.list(resources.nodes, { signal })).items.map(({ metadata }) => metadata.name);
  const pods = (await admin.list(resources.pods, { signal })).items;
  const kinds = [
    resources.daemonSets,
    resources.statefulSets,
    resources.deployments,
  ] as readonly Resource<DaemonSet>[];
  const owners = new Set<string>();
  for (const resource of kinds) {
    for (const workload of (await admin.list(resource, { signal })).items as readonly Workload[]) {
      owners.add(workload.metadata.uid);
      // Deleted since it was listed: the next step sees that.
      await follow(admin, resource, workload, nodes, pods, silentNodes, signal).catch((error) => {
        if (!isNotFound(error)) throw error;
      });
    }
  }
  for (const pod of pods) {
    const [owner] = pod.metadata.ownerReferences ?? [];
    if (owner !== undefined && !owners.has(owner.uid)) await end(admin, pod, signal);
  }
  await registerDriver(admin, driver, nodes, silentNodes, signal);
}

async function follow(
  admin: KubeClient,
  resource: Resource<DaemonSet>,
  workload: Workload,
  nodes: readonly string[],
  pods: readonly Stored<Pod>[],
  silentNodes: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace = "", generation = 1, uid } = workload.metadata;
  const isDaemon = resource.kind === "DaemonSet";
  const replicas = (workload as Stored<Deployment>).spec?.replicas ?? 1;
  const places = isDaemon ? nodes : nodes.slice(0, Math.max(1, replicas)).slice(0, replicas);
  const labels = workload.spec?.template?.metadata?.labels ?? {};
  let updated = 0;
  let ready = 0;
  for (const node of places) {
    const ref: ObjectRef = { name: `${name}-${node}`, namespace };
    const pod = pods.find(({ metadata }) => metadata.name === ref.name && metadata.namespace === namespace);
    const template = JSON.stringify(workload.spec?.template);
    const isCurrent =
      pod?.metadata.annotations?.template === template && pod.metadata.ownerReferences?.[0]?.uid === uid;
    if (pod !== undefined && !isCurrent) await end(admin, pod, signal);
    else if (pod === undefined) {
      const owner = { apiVersion: "apps/v1", kind: resource.kind, name, uid, controller: true };
      const metadata = { ...ref, labels, annotations: { template }, ownerReferences: [owner] };
      const containers = [{ name: "driver", image: "driver" }];
      await admin.create(resources.pods, { metadata, spec: { containers, nodeName: node } }, { signal });
    } else {
      updated++;
      if (!silentNodes.has(node)) ready++;
    }
  }
  const status = isDaemon
    ? {
        observedGeneration: generation,
        desiredNumberScheduled: places.length,
        currentNumberScheduled: places.length,
        numberMisscheduled: 0,
        numberReady: ready,
        updatedNumberScheduled: updated,
        numberAvailable: ready,
      }
    : { observedGeneration: generation, replicas: updated, updatedReplicas: updated, readyReplicas: ready };
  await admin.patch(
    resource,
    { name, namespace },
    { type: "merge", body: { status } },
    { signal, subresource: "status" },
  );
}

async function end(admin: KubeClient, pod: Stored<Pod>, signal: AbortSignal): Promise<void> {
  const { name, namespace = "" } = pod.metadata;
  await admin.delete(resources.pods, { name, namespace }, { signal, gracePeriodSeconds: 0 });
}

async function registerDriver(
  admin: KubeClient,
  driver: string,
  nodes: readonly string[],
  silentNodes: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const pods = (await admin.list(resources.pods, { signal })).items;
  for (const node of nodes) {
    if (silentNodes.has(node)) continue;
    const runs = pods.some(
      ({ spec, metadata }) =>
        spec?.nodeName === node && metadata.labels?.["app.kubernetes.io/component"] === "node",
    );
    const drivers = runs ? [{ name: driver, nodeID: node, topologyKeys: [] }] : [];
    const ref = { name: node };
    if ((await admin.get(resources.csiNodes, ref, { signal })) === undefined) {
      await admin.create(resources.csiNodes, { metadata: ref, spec: { drivers } }, { signal });
    } else {
      await admin.patch(resources.csiNodes, ref, { type: "merge", body: { spec: { drivers } } }, { signal });
    }
  }
}
