/** Parts of which the clusters of the gallery are made: objects as API servers have them, with what an assessment may look at. */
import type { KubeObject } from "@longshore/kube";

type Fields = Readonly<Record<string, unknown>>;
const storage = "storage.k8s.io/v1";
/** When the clusters are looked at. */
export const galleryNow = new Date("2026-06-01T12:00:00Z");
/** Long enough ago for anything that is stuck to count as that. */
export const longAgo = "2026-06-01T10:00:00Z";

/** Any object. Metadata is merged with its name. */
export function object(apiVersion: string, kind: string, name: string, fields: Fields = {}): KubeObject {
  const { metadata = {}, ...rest } = fields;
  return { apiVersion, kind, metadata: { name, ...(metadata as object) }, ...rest } as KubeObject;
}

/** An object of a namespace. */
export const within = (
  namespace: string,
  apiVersion: string,
  kind: string,
  name: string,
  fields: Fields = {},
) => object(apiVersion, kind, name, { ...fields, metadata: { namespace, ...(fields.metadata as object) } });

interface NodeParts {
  readonly version: string;
  readonly labels?: Fields;
  readonly annotations?: Fields;
  readonly unschedulable?: true;
  readonly taints?: readonly object[];
  readonly limits?: Fields;
  readonly inUse?: readonly string[];
  readonly attached?: readonly string[];
}

/** A node. @param parts `limits`: e.g. `attachable-volumes-aws-ebs` */
export function node(name: string, parts: NodeParts): KubeObject {
  const { version, labels = {}, annotations = {}, limits = {}, inUse = [], attached = [] } = parts;
  return object("v1", "Node", name, {
    metadata: { labels: { "kubernetes.io/hostname": name, ...labels }, annotations },
    spec: {
      ...(parts.unschedulable === undefined ? {} : { unschedulable: true }),
      ...(parts.taints === undefined ? {} : { taints: parts.taints }),
    },
    status: {
      allocatable: { cpu: "4", memory: "16Gi", pods: "110", ...limits },
      conditions: [
        { type: "Ready", status: "True", lastTransitionTime: longAgo, lastHeartbeatTime: longAgo },
      ],
      nodeInfo: nodeInfo(version),
      volumesInUse: inUse,
      volumesAttached: attached.map((each) => ({ name: each, devicePath: "/dev/xvdba" })),
    },
  });
}

function nodeInfo(kubeletVersion: string): Fields {
  return {
    ...{ kubeletVersion, kubeProxyVersion: kubeletVersion, operatingSystem: "linux", architecture: "amd64" },
    ...{ machineID: "m", systemUUID: "s", bootID: "b", kernelVersion: "5.10", osImage: "Linux" },
    containerRuntimeVersion: "containerd://1.6",
  };
}

interface CsiNodeParts {
  /** Drivers that are registered, with their limits; 0: none. */
  readonly drivers?: Readonly<Record<string, number>>;
  readonly migrated?: readonly string[];
  readonly topologyKeys?: readonly string[];
}

/** What a node says of drivers. */
export function csiNode(
  name: string,
  { drivers = {}, migrated = [], topologyKeys = [] }: CsiNodeParts,
): KubeObject {
  return object(storage, "CSINode", name, {
    metadata: {
      annotations:
        migrated.length === 0 ? {} : { "storage.alpha.kubernetes.io/migrated-plugins": migrated.join(",") },
    },
    spec: {
      drivers: Object.entries(drivers).map(([driver, count]) => ({
        ...{ name: driver, nodeID: `id-${name}`, topologyKeys },
        ...(count === 0 ? {} : { allocatable: { count } }),
      })),
    },
  });
}

/** A driver's object. */
export const csiDriver = (name: string, spec: Fields = {}) =>
  object(storage, "CSIDriver", name, { spec: { attachRequired: true, podInfoOnMount: false, ...spec } });

/** A class. */
export const storageClass = (
  name: string,
  provisioner: string,
  parameters: Fields = {},
  fields: Fields = {},
) => object(storage, "StorageClass", name, { provisioner, parameters, ...fields });

interface VolumeParts {
  readonly modes?: readonly string[];
  readonly claim?: string;
  /** The plugin or driver that made the disk. */
  readonly by?: string;
  readonly zone?: string;
  readonly spec?: Fields;
  readonly metadata?: Fields;
}

/** A volume with this source. @param parts `claim`: `namespace/name` */
export function volume(name: string, source: Fields, parts: VolumeParts = {}): KubeObject {
  const { modes = ["ReadWriteOnce"], claim, by, zone, spec = {}, metadata = {} } = parts;
  const [namespace = "", claimName = ""] = (claim ?? "/").split("/");
  const annotations = by === undefined ? {} : { "pv.kubernetes.io/provisioned-by": by };
  const labels = zone === undefined ? {} : { "topology.kubernetes.io/zone": zone };
  return object("v1", "PersistentVolume", name, {
    metadata: { annotations, labels, ...metadata },
    spec: {
      ...{ capacity: { storage: "10Gi" }, accessModes: modes, persistentVolumeReclaimPolicy: "Delete" },
      ...(claim === undefined
        ? {}
        : { claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name: claimName } }),
      ...source,
      ...spec,
    },
    status: { phase: claim === undefined ? "Available" : "Bound" },
  });
}

/** A claim, bound to `volumeName` where that is given. */
export function claim(namespace: string, name: string, volumeName?: string, fields: Fields = {}): KubeObject {
  const { metadata = {}, spec = {} } = fields as { metadata?: Fields; spec?: Fields };
  return within(namespace, "v1", "PersistentVolumeClaim", name, {
    metadata,
    spec: {
      ...{ accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "10Gi" } } },
      ...(volumeName === undefined ? {} : { volumeName }),
      ...spec,
    },
    status: { phase: volumeName === undefined ? "Pending" : "Bound" },
  });
}

/** The volume of a pod that is a claim. */
export const ofClaim = (claimName: string) => ({ name: "data", persistentVolumeClaim: { claimName } });

const container = { name: "main", image: "images.example/main:1" };

/** The spec of pods with these volumes. */
export const podSpec = (volumes: readonly object[], more: Fields = {}) => ({
  ...{ containers: [container], volumes },
  ...more,
});

interface PodParts {
  readonly labels?: Fields;
  readonly owner?: string;
  readonly spec?: Fields;
  readonly ready?: "True" | "False";
}

/** A running pod. */
export function pod(
  namespace: string,
  name: string,
  nodeName: string,
  volumes: readonly object[],
  { labels = {}, owner, spec = {}, ready = "True" }: PodParts = {},
): KubeObject {
  const ownerReferences =
    owner === undefined
      ? []
      : [{ apiVersion: "apps/v1", kind: "StatefulSet", name: owner, uid: `uid-${owner}`, controller: true }];
  return within(namespace, "v1", "Pod", name, {
    metadata: { labels, ownerReferences },
    spec: podSpec(volumes, { nodeName, ...spec }),
    status: { phase: "Running", conditions: [{ type: "Ready", status: ready }] },
  });
}

/** The part of a driver on a node. */
export const driverPod = (driver: string, nodeName: string, ready: "True" | "False" = "True") =>
  pod(
    "kube-system",
    `${driver.split(".")[0]}-csi-node-${nodeName}`,
    nodeName,
    [
      {
        name: "plugin-dir",
        hostPath: { path: `/var/lib/kubelet/plugins/${driver}/`, type: "DirectoryOrCreate" },
      },
    ],
    { ready, owner: "csi-node" },
  );

/** What makes pods with these volumes. */
export function workload(
  kind: "Deployment" | "StatefulSet" | "DaemonSet",
  namespace: string,
  name: string,
  volumes: readonly object[],
): KubeObject {
  const labels = { app: name };
  return within(namespace, "apps/v1", kind, name, {
    spec: {
      ...(kind === "DaemonSet" ? {} : { replicas: 1 }),
      ...(kind === "StatefulSet" ? { serviceName: name } : {}),
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podSpec(volumes) },
    },
  });
}

interface AttachmentParts {
  readonly metadata?: Fields;
  readonly status?: Fields;
}

/** An attachment of a volume to a node. */
export const attachment = (
  name: string,
  attacher: string,
  nodeName: string,
  persistentVolumeName: string,
  { metadata = {}, status = { attached: true } }: AttachmentParts = {},
) =>
  object(storage, "VolumeAttachment", name, {
    metadata: { creationTimestamp: longAgo, ...metadata },
    spec: { attacher, nodeName, source: { persistentVolumeName } },
    status,
  });

/** What a component reported. */
export const warning = (namespace: string, kind: string, name: string, reason: string, message: string) =>
  within(namespace, "v1", "Event", `${name}.${reason.toLowerCase()}`, {
    involvedObject: { kind, namespace, name },
    ...{ reason, message, type: "Warning", count: 12, firstTimestamp: longAgo, lastTimestamp: longAgo },
    source: { component: "kubelet" },
  });

/** A budget that covers pods of the app. @param allowed disruptions */
export const budget = (namespace: string, app: string, allowed: number) =>
  within(namespace, "policy/v1", "PodDisruptionBudget", app, {
    spec: { minAvailable: 1, selector: { matchLabels: { app } } },
    status: { disruptionsAllowed: allowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
  });

/** A secret, with something in it that no report may have. */
export const secret = (namespace: string, name: string) =>
  within(namespace, "v1", "Secret", name, { data: { key: "aGlkZGVu" } });
