/** The objects of one volume: a claim and a volume that are bound to each other, and a pod on the node that uses them. */
import { type CsiConnection, VolumeCapability_AccessMode_Mode as Mode } from "@longshore/csi";
import { type KubeClient, resources } from "@longshore/kube";

/** The driver of the volumes. */
export const driver = "ebs.csi.aws.com";
export const namespace = "default";
/** For calls that no one ends. */
export const signal = new AbortController().signal;

const settledMs = 200;

/** A mount that is done. */
export interface Mounted {
  /** When the pod had been assigned to its node, as `performance.now`. */
  readonly beganMs: number;
  readonly tookMs: number;
}

/** How pods use the volumes. */
export const volumeCapability = {
  accessType: { case: "mount", value: { fsType: "ext4" } },
  accessMode: { mode: Mode.SINGLE_NODE_WRITER },
} as const;

/** Creates a disk, and volume and claim of this name, both bound. @returns the volume handle */
export async function createBound(
  kube: KubeClient,
  controller: CsiConnection["controller"],
  name: string,
): Promise<string> {
  const { volume } = await controller.createVolume(
    { name, capacityRange: { requiredBytes: 1n << 30n }, volumeCapabilities: [volumeCapability] },
    { signal, timeoutMs: 10_000 },
  );
  const volumeHandle = volume?.volumeId ?? "";
  const claim = await kube.create(
    resources.persistentVolumeClaims,
    {
      metadata: { name, namespace, annotations: { "pv.kubernetes.io/bind-completed": "yes" } },
      spec: {
        accessModes: ["ReadWriteOnce"],
        storageClassName: "",
        volumeName: name,
        resources: { requests: { storage: "1Gi" } },
      },
    },
    { signal },
  );
  await kube.create(
    resources.persistentVolumes,
    {
      metadata: { name },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        csi: { driver, volumeHandle, fsType: "ext4" },
        claimRef: {
          kind: "PersistentVolumeClaim",
          apiVersion: "v1",
          namespace,
          name,
          uid: claim.metadata.uid,
        },
        persistentVolumeReclaimPolicy: "Retain",
      },
    },
    { signal },
  );
  const status = { signal, subresource: "status" } as const;
  const bound = (body: object) => ({ type: "merge", body: { status: { phase: "Bound", ...body } } }) as const;
  await kube.patch(resources.persistentVolumes, { name }, bound({}), status);
  const has = { accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } };
  await kube.patch(resources.persistentVolumeClaims, { name, namespace }, bound(has), status);
  // What controllers do about the two has an end before the pod comes.
  await new Promise((resolve) => setTimeout(resolve, settledMs));
  return volumeHandle;
}

/** Creates the pod, assigned to the node. @returns its UID */
export async function createPod(kube: KubeClient, name: string, nodeName: string): Promise<string> {
  const pod = await kube.create(
    resources.pods,
    {
      metadata: { name, namespace },
      spec: {
        nodeName,
        // The volume of a token is another volume.
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 0,
        containers: [
          { name: "c", image: "host", command: ["wait"], volumeMounts: [{ name: "v", mountPath: "/v" }] },
        ],
        volumes: [{ name: "v", persistentVolumeClaim: { claimName: name } }],
      },
    },
    { signal },
  );
  return pod.metadata.uid;
}
