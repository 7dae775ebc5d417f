/** The cluster that both controllers attach in: nodes with a driver, bound claims and volumes, and pods that use them. */
import {
  type HttpKubeClient,
  type KubeObject,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Resource,
  resources,
} from "@longshore/kube";
import { createWithStatus, signal } from "../../tests/kubernetes/support/clients.ts";

/** Name of the driver whose volumes are attached. */
export const driver = "bench.csi.example.com";

const namespace = "default";
const atOnce = 32;

/** How large the cluster is, and the beginning of its objects' names. */
export interface Size {
  readonly prefix: string;
  readonly pods: number;
  readonly nodes: number;
}

const nodeOf = ({ prefix, nodes }: Size, index: number) => `${prefix}-node-${index % nodes}`;

/** Does the work for each number below `count`, so many at once. */
export async function forEach(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
}

/** Everything but the pods. */
export async function createCluster(kube: HttpKubeClient, size: Size): Promise<void> {
  const { prefix, pods, nodes } = size;
  await forEach(nodes, async (index) => {
    await kube.create(resources.nodes, aNode(nodeOf(size, index)), { signal });
    const drivers = [{ name: driver, nodeID: `${index}`, topologyKeys: [] }];
    await kube.create(resources.csiNodes, csiNode(nodeOf(size, index), drivers), { signal });
  });
  await forEach(pods, async (index) => {
    const claim = aClaim(`${prefix}-${index}`);
    const { metadata } = await createWithStatus(kube, resources.persistentVolumeClaims, claim);
    await createWithStatus(kube, resources.persistentVolumes, aVolume(`${prefix}-${index}`, metadata.uid));
  });
}

/** The pods, as many at once as a busy scheduler would bind. */
export function createPods(kube: HttpKubeClient, size: Size): Promise<void> {
  return forEach(size.pods, (index) =>
    kube.create(resources.pods, aPod(`${size.prefix}-${index}`, nodeOf(size, index)), { signal }),
  );
}

/** Deletes all of it. */
export async function deleteCluster(kube: HttpKubeClient, { prefix, pods, nodes }: Size): Promise<void> {
  const remove = async <T extends KubeObject>(
    resource: Resource<T>,
    ref: { name: string; namespace?: string },
  ) => {
    const body = { metadata: { finalizers: null } };
    await kube.patch(resource, ref, { type: "merge", body }, { signal }).catch(() => {});
    await kube.delete(resource, ref, { signal, gracePeriodSeconds: 0 }).catch(() => {});
  };
  await forEach(pods, async (index) => {
    await remove(resources.pods, { name: `${prefix}-${index}`, namespace });
    await remove(resources.persistentVolumeClaims, { name: `${prefix}-${index}`, namespace });
    await remove(resources.persistentVolumes, { name: `${prefix}-${index}` });
  });
  const { items } = await kube.list(resources.volumeAttachments, { signal });
  await forEach(items.length, (index) =>
    remove(resources.volumeAttachments, { name: items[index]?.metadata.name ?? "" }),
  );
  await forEach(nodes, async (index) => {
    await remove(resources.csiNodes, { name: `${prefix}-node-${index}` });
    await remove(resources.nodes, { name: `${prefix}-node-${index}` });
  });
}

function aNode(name: string): Node {
  const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
  return { apiVersion: "v1", kind: "Node", metadata: { name, annotations } };
}

function csiNode(name: string, drivers: readonly { name: string; nodeID: string; topologyKeys: string[] }[]) {
  return {
    apiVersion: "storage.k8s.io/v1" as const,
    kind: "CSINode" as const,
    metadata: { name },
    spec: { drivers: [...drivers] },
  };
}

function aClaim(name: string): PersistentVolumeClaim {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name, namespace, annotations: { "pv.kubernetes.io/bind-completed": "yes" } },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "",
      volumeName: name,
      resources: { requests: { storage: "1Gi" } },
    },
    status: { phase: "Bound" },
  };
}

function aVolume(name: string, uid: string): PersistentVolume {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      csi: { driver, volumeHandle: name },
      claimRef: { kind: "PersistentVolumeClaim", apiVersion: "v1", namespace, name, uid },
      persistentVolumeReclaimPolicy: "Retain",
    },
    status: { phase: "Bound" },
  };
}

function aPod(name: string, nodeName: string): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace },
    spec: {
      nodeName,
      containers: [{ name: "c", image: "none", volumeMounts: [{ name: "v", mountPath: "/v" }] }],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: name } }],
    },
  };
}
