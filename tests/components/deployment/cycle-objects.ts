/** Objects and moves that several cycles share. */
import { type KubeObject, type Resource, resources } from "@longshore/kube";
import { type AccessWorld, accessNames } from "./access-world.ts";

const { driver, namespace, secret, secretNamespace } = accessNames;

/** How a sidecar contends for its lease in a test. */
export const aLease = {
  namespace,
  identity: "replica-1",
  leaseDurationMs: 3000,
  renewDeadlineMs: 2000,
  retryPeriodMs: 1000,
  recordEvents: true,
} as const;

/** Parameters that name the driver's secret, for the calls of the given kind. */
export const secretParameters = (call: string): Record<string, string> => ({
  [`csi.storage.k8s.io/${call}-secret-name`]: secret,
  [`csi.storage.k8s.io/${call}-secret-namespace`]: secretNamespace,
});

/** A volume of the driver, bound to `data`, with a secret for each call. */
export function aVolume(name: string, claimUid?: string): KubeObject {
  const ref = { name: secret, namespace: secretNamespace };
  return {
    metadata: {
      name,
      annotations: {
        "pv.kubernetes.io/provisioned-by": driver,
        "volume.kubernetes.io/controller-modify-secret-name": secret,
        "volume.kubernetes.io/controller-modify-secret-namespace": secretNamespace,
      },
    },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "fast",
      csi: { driver, volumeHandle: "vol-9", controllerPublishSecretRef: ref, controllerExpandSecretRef: ref },
      claimRef: {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        namespace: "default",
        name: "data",
        ...(claimUid === undefined ? {} : { uid: claimUid }),
      },
    },
  } as KubeObject;
}

/** A node with the driver on it. */
export async function addNode({ admin, signal }: AccessWorld): Promise<void> {
  const labels = { "topology.ebs.csi.aws.com/zone": "us-east-1a" };
  await admin.create(resources.nodes, { metadata: { name: "node-a", labels } }, { signal });
  const drivers = [{ name: driver, nodeID: "i-a", topologyKeys: Object.keys(labels) }];
  await admin.create(resources.csiNodes, { metadata: { name: "node-a" }, spec: { drivers } }, { signal });
}

/**
 * Whether an event (of this reason, if given) was sent more than once: it was created, and then its count increased.
 */
export async function countedAgain({ admin, signal }: AccessWorld, reason?: string): Promise<boolean> {
  const { items } = await admin.list(resources.events, { signal });
  return items.some((event) => (reason ?? event.reason) === event.reason && (event.count ?? 0) > 1);
}

/** Changes what is stored, as some controller would. */
export async function change<T extends KubeObject>(
  { admin, signal }: AccessWorld,
  resource: Resource<T>,
  ref: { readonly name: string; readonly namespace?: string },
  body: object,
  subresource?: "status",
): Promise<void> {
  await admin.patch(
    resource,
    ref,
    { type: "merge", body },
    { signal, ...(subresource ? { subresource } : {}) },
  );
}

/** The claim `default/data`, bound to a volume of the driver. */
export async function addBoundClaim(
  world: AccessWorld,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { admin, cloud, signal } = world;
  cloud.disks.set("vol-9", { name: "pv-1", bytes: 1n << 30n, zone: "us-east-1a" });
  await admin.create(
    resources.storageClasses,
    { metadata: { name: "fast" }, provisioner: driver, allowVolumeExpansion: true },
    { signal },
  );
  const ref = { namespace: "default", name: "data" };
  const accessModes = ["ReadWriteOnce"];
  const { metadata } = await admin.create(
    resources.persistentVolumeClaims,
    {
      metadata: { ...ref, labels: { ...labels } },
      spec: {
        accessModes,
        resources: { requests: { storage: "1Gi" } },
        storageClassName: "fast",
        volumeName: "pv-1",
      },
    },
    { signal },
  );
  const pv = aVolume("pv-1", metadata.uid);
  await admin.create(resources.persistentVolumes, pv, { signal });
  await change(
    world,
    resources.persistentVolumes,
    { name: "pv-1" },
    { status: { phase: "Bound" } },
    "status",
  );
  const status = { phase: "Bound", accessModes, capacity: { storage: "1Gi" } };
  await change(world, resources.persistentVolumeClaims, ref, { status }, "status");
}
