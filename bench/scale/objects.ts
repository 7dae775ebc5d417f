/** The objects of a cluster whose volumes are all attached: half of the in-tree EBS plugin and migrated, half of its CSI driver. */
import {
  type CSINode,
  type KubeClient,
  type KubeObject,
  type Lease,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Resource,
  refOf,
  resources,
  type VolumeAttachment,
} from "@longshore/kube";
import { apiTime } from "@longshore/kube/basics";
import { attachmentName } from "@longshore/storage";

/** How large the cluster is; each volume has one pod, and the volumes are spread evenly. */
export interface Size {
  readonly nodes: number;
  readonly volumes: number;
}

/** The kinds that the controllers follow and that a cluster has many of. */
export const manyOf = [
  resources.nodes,
  resources.csiNodes,
  resources.pods,
  resources.persistentVolumeClaims,
  resources.persistentVolumes,
  resources.volumeAttachments,
] as const;

const driver = "ebs.csi.aws.com";
const plugin = "kubernetes.io/aws-ebs";
export const namespace = "default";
const zone = "us-east-1a";
/** For calls that no one ends. */
export const signal = new AbortController().signal;
const range = (count: number) => Array.from({ length: count }, (_, index) => index);

/** The claim that no volume is bound to, and the volume that suits it. */
export const late = { claim: "late", volume: "pv-late" };
/** The volume whose pod is not there: it is attached, and nothing wants that. */
export const unwanted = 0;

const handleOf = (index: number): string => `vol-${index.toString(16).padStart(17, "0")}`;
export const nodeOf = ({ nodes }: Size, index: number): string => `node-${index % nodes}`;
export const podOf = (index: number): string => `pod-${index}`;
/** Name of the VolumeAttachment of a volume. */
const attachmentOf = (size: Size, index: number): string =>
  attachmentName(handleOf(index), driver, nodeOf(size, index));

/** Creates an object, and writes its status where it has one. @returns its UID */
async function put<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  object: T,
): Promise<string> {
  const created = await kube.create(resource, object, { signal });
  const { status } = object as { readonly status?: unknown };
  if (status !== undefined) {
    const patch = { type: "merge", body: { status } } as const;
    await kube.patch(resource, refOf(created), patch, { signal, subresource: "status" });
  }
  return created.metadata.uid;
}

/** Creates the whole cluster. */
export async function fill(kube: KubeClient, size: Size): Promise<void> {
  for (const node of range(size.nodes)) {
    const name = `node-${node}`;
    await put(kube, resources.nodes, aNode(name, volumesOn(size, node)));
    await put(kube, resources.csiNodes, aCsiNode(name));
    await put(kube, resources.leases, { metadata: { name, namespace }, spec: leaseAt(name, 0) });
  }
  for (const index of range(size.volumes)) {
    const uid = await put(kube, resources.persistentVolumeClaims, aClaim(`claim-${index}`, `pv-${index}`));
    await put(kube, resources.persistentVolumes, aVolume(`pv-${index}`, index, uid));
    await put(kube, resources.volumeAttachments, anAttachment(size, index));
    if (index !== unwanted) await put(kube, resources.pods, aPod(size, index));
  }
  // What is left to decide beside `unwanted`: to bind the two to one another.
  await put(kube, resources.persistentVolumes, aVolume(late.volume, size.volumes, undefined));
  await put(kube, resources.persistentVolumeClaims, aClaim(late.claim, undefined));
}

function volumesOn({ nodes, volumes }: Size, node: number): readonly number[] {
  return range(Math.ceil((volumes - node) / nodes)).map((at) => node + at * nodes);
}

/** A node with the volumes attached and in use, and with as many conditions and images as kubelets report. */
function aNode(name: string, volumes: readonly number[]): Node {
  const names = volumes.map((index) => `kubernetes.io/csi/${driver}^${handleOf(index)}`);
  return {
    metadata: {
      name,
      labels: { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone },
      annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
    },
    spec: { providerID: `aws:///${zone}/i-${name}` },
    status: {
      ...reportOf(0),
      capacity: { cpu: "8", memory: "32Gi", pods: "110" },
      images: range(30).map((image) => ({
        names: [`registry.example.com/team/application-${image}@sha256:${String(image).padStart(64, "0")}`],
        sizeBytes: 1e8 + image,
      })),
      volumesAttached: names.map((each) => ({ name: each, devicePath: "" })),
      volumesInUse: names.filter((_name, at) => volumes[at] !== unwanted),
    },
  };
}

/** The part of a node's status that each report changes. */
export function reportOf(round: number): NonNullable<Node["status"]> {
  const at = apiTime(new Date(1.7e12 + round * 1000));
  return {
    conditions: ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map((type) => ({
      type,
      status: type === "Ready" ? "True" : "False",
      lastHeartbeatTime: at,
      lastTransitionTime: apiTime(new Date(1.7e12)),
      reason: `Kubelet${type}`,
      message: `the kubelet reports ${type}`,
    })),
  };
}

function aCsiNode(name: string): CSINode {
  return {
    metadata: { name, annotations: { "storage.alpha.kubernetes.io/migrated-plugins": plugin } },
    spec: { drivers: [{ name: driver, nodeID: `i-${name}`, topologyKeys: [] }] },
  };
}

/** A node's lease as it renews it. */
export function leaseAt(name: string, round: number): NonNullable<Lease["spec"]> {
  const renewTime = new Date(1.7e12 + round * 1000).toISOString().replace("Z", "000Z");
  return { holderIdentity: name, leaseDurationSeconds: 40, renewTime };
}

function aClaim(name: string, volumeName: string | undefined): PersistentVolumeClaim {
  const isBound = volumeName !== undefined;
  return {
    metadata: {
      name,
      namespace,
      finalizers: ["kubernetes.io/pvc-protection"],
      annotations: isBound
        ? { "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes" }
        : {},
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "100Gi" } },
      // A class of its own: neither of them is any other's.
      storageClassName: isBound ? "gp3" : late.claim,
      volumeMode: "Filesystem",
      ...(isBound ? { volumeName } : {}),
    },
    ...(isBound
      ? { status: { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "100Gi" } } }
      : {}),
  };
}

/** Every second volume is the in-tree plugin's. @param claimUid undefined: it waits for {@link late} */
function aVolume(name: string, index: number, claimUid: string | undefined): PersistentVolume {
  const isInTree = index % 2 === 1;
  const source = isInTree
    ? { awsElasticBlockStore: { volumeID: handleOf(index), fsType: "ext4" } }
    : { csi: { driver, volumeHandle: handleOf(index), fsType: "ext4" } };
  return {
    metadata: {
      name,
      finalizers: ["kubernetes.io/pv-protection"],
      annotations: {
        "pv.kubernetes.io/provisioned-by": isInTree ? plugin : driver,
        ...(isInTree ? { "pv.kubernetes.io/migrated-to": driver } : {}),
      },
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "100Gi" },
      ...source,
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: claimUid === undefined ? late.claim : "gp3",
      volumeMode: "Filesystem",
      ...(claimUid === undefined
        ? {}
        : {
            claimRef: {
              apiVersion: "v1",
              kind: "PersistentVolumeClaim",
              namespace,
              name: `claim-${index}`,
              uid: claimUid,
            },
          }),
    },
    status: { phase: claimUid === undefined ? "Available" : "Bound" },
  };
}

/** As its controller makes it for a pod that wants the volume, and as an attacher confirms it. */
function anAttachment(size: Size, index: number): VolumeAttachment {
  return {
    metadata: { name: attachmentOf(size, index), annotations: { "csi.alpha.kubernetes.io/node-id": "i" } },
    spec: {
      attacher: driver,
      nodeName: nodeOf(size, index),
      source: { persistentVolumeName: `pv-${index}` },
    },
    status: { attached: true },
  };
}

function aPod(size: Size, index: number): Pod {
  const container = (at: number) => ({
    name: `c-${at}`,
    image: "registry.example.com/team/app:1.2.3",
    env: range(8).map((variable) => ({ name: `VARIABLE_${variable}`, value: `value of ${variable}` })),
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    volumeMounts: [{ name: "data", mountPath: "/data" }],
  });
  return {
    metadata: { name: podOf(index), namespace, labels: { app: "bench", index: String(index) } },
    spec: {
      nodeName: nodeOf(size, index),
      automountServiceAccountToken: false,
      containers: [container(0), container(1)],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: `claim-${index}` } }],
    },
    status: podStatus(0),
  };
}

/** A running pod's status; each round another one. */
export function podStatus(round: number): NonNullable<Pod["status"]> {
  return {
    phase: "Running",
    message: `round ${round}`,
    conditions: ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map((type) => ({
      type,
      status: "True",
      lastTransitionTime: apiTime(new Date(1.7e12)),
    })),
  };
}
