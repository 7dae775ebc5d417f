/** Objects of a large cluster, of the size that real ones have: claims on EBS volumes made in the tree, and what goes with them. */

/** How many objects the cluster has. */
export interface ClusterSize {
  readonly volumes: number;
  readonly nodes: number;
  readonly pods: number;
}

/** Lists of the cluster: where the API server has it, its kind, and the object at each index. */
export interface ClusterList {
  readonly path: string;
  readonly kind: string;
  readonly apiVersion: string;
  readonly count: number;
  objectAt(index: number): object;
}

const zoneOf = (index: number) => `us-east-1${"abc"[index % 3]}`;
const hex = (index: number, digits: number) =>
  ((index * 2654435761) >>> 0).toString(16).padStart(digits, "0");
const nodeName = (index: number) => `ip-10-${index >> 8}-${index & 255}-17.ec2.internal`;
const namespaceOf = (index: number) => `team-${index % 200}`;
const plugin = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";

/** Fields of an object as servers keep them; a quarter of what an object takes. */
function managedFields(apiVersion: string, ...fields: readonly string[]): object[] {
  const fieldsV1 = Object.fromEntries(
    fields.map((field) => [`f:${field}`, { ".": {}, "f:value": {}, "f:name": {} }]),
  );
  const time = "2026-03-01T10:00:00Z";
  return ["kube-controller-manager", "kubelet"].map((manager) => ({
    manager,
    operation: "Update",
    apiVersion,
    time,
    fieldsType: "FieldsV1",
    fieldsV1: { "f:metadata": { "f:annotations": fieldsV1 }, "f:spec": fieldsV1 },
  }));
}

function metadata(name: string, index: number, more: object = {}): object {
  return {
    name,
    uid: `${hex(index, 8)}-7a3c-4c0e-9b1d-${hex(index + 7, 12)}`,
    resourceVersion: String(900_000 + index),
    creationTimestamp: "2026-03-01T10:00:00Z",
    ...more,
  };
}

function volume(index: number): object {
  const zone = zoneOf(index);
  return {
    metadata: metadata(`pvc-${hex(index, 8)}-${index}`, index, {
      labels: { "topology.kubernetes.io/region": "us-east-1", "topology.kubernetes.io/zone": zone },
      annotations: {
        "kubernetes.io/createdby": "aws-ebs-dynamic-provisioner",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "pv.kubernetes.io/provisioned-by": plugin,
      },
      finalizers: ["kubernetes.io/pv-protection"],
      managedFields: managedFields("v1", "accessModes", "awsElasticBlockStore", "capacity"),
    }),
    spec: {
      capacity: { storage: "20Gi" },
      awsElasticBlockStore: { volumeID: `aws://${zone}/vol-0${hex(index, 16)}`, fsType: "ext4" },
      accessModes: ["ReadWriteOnce"],
      claimRef: {
        kind: "PersistentVolumeClaim",
        apiVersion: "v1",
        namespace: namespaceOf(index),
        name: `data-${index}`,
        uid: `${hex(index + 7, 8)}-7a3c-4c0e-9b1d-${hex(index, 12)}`,
        resourceVersion: "891000",
      },
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "gp2",
      volumeMode: "Filesystem",
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: "topology.kubernetes.io/zone", operator: "In", values: [zone] },
                { key: "topology.kubernetes.io/region", operator: "In", values: ["us-east-1"] },
              ],
            },
          ],
        },
      },
    },
    status: { phase: "Bound" },
  };
}

function claim(index: number): object {
  return {
    metadata: metadata(`data-${index}`, index, {
      namespace: namespaceOf(index),
      annotations: {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.beta.kubernetes.io/storage-provisioner": plugin,
      },
      finalizers: ["kubernetes.io/pvc-protection"],
      managedFields: managedFields("v1", "accessModes", "resources"),
    }),
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "20Gi" } },
      volumeName: `pvc-${hex(index, 8)}-${index}`,
      storageClassName: "gp2",
      volumeMode: "Filesystem",
    },
    status: { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "20Gi" } },
  };
}

function node(index: number): object {
  return {
    metadata: metadata(nodeName(index), index, {
      labels: {
        "kubernetes.io/hostname": nodeName(index),
        "node.kubernetes.io/instance-type": "m5.4xlarge",
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": zoneOf(index),
        "topology.ebs.csi.aws.com/zone": zoneOf(index),
      },
      managedFields: managedFields("v1", "conditions", "images", "nodeInfo", "volumesInUse"),
    }),
    spec: { providerID: `aws:///${zoneOf(index)}/i-0${hex(index, 16)}` },
    status: {
      allocatable: { cpu: "15890m", memory: "60735764Ki", pods: "234", "attachable-volumes-aws-ebs": "25" },
      capacity: { cpu: "16", memory: "63433492Ki", pods: "234", "attachable-volumes-aws-ebs": "25" },
      conditions: ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map((type) => ({
        type,
        status: type === "Ready" ? "True" : "False",
        lastHeartbeatTime: "2026-03-01T10:00:00Z",
        lastTransitionTime: "2026-03-01T10:00:00Z",
        reason: "KubeletIsReady",
        message: "kubelet is posting ready status",
      })),
      images: Array.from({ length: 30 }, (_, image) => ({
        names: [
          `images.example/team/app-${image}@sha256:${hex(image, 64)}`,
          `images.example/team/app-${image}:1.4.${image}`,
        ],
        sizeBytes: 80_000_000 + image,
      })),
      nodeInfo: {
        kubeletVersion: "v1.22.17",
        kernelVersion: "5.10.198",
        osImage: "Linux",
        operatingSystem: "linux",
      },
    },
  };
}

function csiNode(index: number): object {
  return {
    metadata: metadata(nodeName(index), index),
    spec: {
      drivers: [
        {
          name: driver,
          nodeID: `i-0${hex(index, 16)}`,
          topologyKeys: ["topology.ebs.csi.aws.com/zone"],
          allocatable: { count: 25 },
        },
      ],
    },
  };
}

function pod(index: number, { nodes, volumes }: ClusterSize): object {
  const container = (name: string) => ({
    name,
    image: `images.example/team/${name}:1.4.${index % 30}`,
    args: ["--listen=:8080", "--data=/data", `--shard=${index}`],
    env: ["POD_NAME", "POD_NAMESPACE", "REGION", "LEVEL", "ENDPOINT", "LIMIT"].map((env) => ({
      name: env,
      value: `value of ${env}`,
    })),
    resources: { limits: { cpu: "2", memory: "2Gi" }, requests: { cpu: "100m", memory: "512Mi" } },
    volumeMounts: [
      { name: "data", mountPath: "/data" },
      { name: "kube-api-access", readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" },
    ],
    readinessProbe: {
      httpGet: { path: "/ready", port: 8080, scheme: "HTTP" },
      periodSeconds: 10,
      failureThreshold: 3,
    },
    terminationMessagePath: "/dev/termination-log",
    imagePullPolicy: "IfNotPresent",
  });
  const disk =
    index < volumes
      ? { name: "data", persistentVolumeClaim: { claimName: `data-${index}` } }
      : { name: "data", emptyDir: {} };
  const time = "2026-03-01T10:00:00Z";
  return {
    metadata: metadata(`app-${index}-0`, index, {
      namespace: namespaceOf(index),
      labels: { app: `app-${index % 1000}`, "controller-revision-hash": hex(index, 10), tier: "backend" },
      annotations: { "checksum/config": hex(index, 64), "example.com/scrape": "true" },
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "StatefulSet",
          name: `app-${index}`,
          uid: hex(index, 36),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: managedFields("v1", "containers", "volumes", "conditions", "containerStatuses"),
    }),
    spec: {
      volumes: [
        disk,
        {
          name: "kube-api-access",
          projected: {
            sources: [
              { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
              { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
            ],
            defaultMode: 420,
          },
        },
      ],
      containers: [container("app"), container("sidecar")],
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      dnsPolicy: "ClusterFirst",
      serviceAccountName: "default",
      nodeName: nodeName(index % nodes),
      securityContext: { fsGroup: 1000 },
      tolerations: ["not-ready", "unreachable"].map((key) => ({
        key: `node.kubernetes.io/${key}`,
        operator: "Exists",
        effect: "NoExecute",
        tolerationSeconds: 300,
      })),
    },
    status: {
      phase: "Running",
      conditions: ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map((type) => ({
        type,
        status: "True",
        lastProbeTime: null,
        lastTransitionTime: time,
      })),
      hostIP: "10.0.0.17",
      podIP: "10.1.0.17",
      startTime: time,
      containerStatuses: ["app", "sidecar"].map((name) => ({
        name,
        state: { running: { startedAt: time } },
        ready: true,
        restartCount: 0,
        image: `images.example/team/${name}:1.4.0`,
        imageID: `images.example/team/${name}@sha256:${hex(index, 64)}`,
        containerID: `containerd://${hex(index, 64)}`,
      })),
      qosClass: "Burstable",
    },
  };
}

/** Every list of the cluster; kinds that are not in it are empty. */
export function clusterLists(size: ClusterSize): readonly ClusterList[] {
  const storage = "storage.k8s.io/v1";
  const list = (
    path: string,
    apiVersion: string,
    kind: string,
    count: number,
    objectAt: (index: number) => object,
  ) => ({
    path,
    apiVersion,
    kind,
    count,
    objectAt,
  });
  return [
    list("/api/v1/nodes", "v1", "Node", size.nodes, node),
    list(`/apis/${storage}/csinodes`, storage, "CSINode", size.nodes, csiNode),
    list(`/apis/${storage}/csidrivers`, storage, "CSIDriver", 1, () => ({
      metadata: metadata(driver, 0),
      spec: {},
    })),
    list("/api/v1/persistentvolumes", "v1", "PersistentVolume", size.volumes, volume),
    list("/api/v1/persistentvolumeclaims", "v1", "PersistentVolumeClaim", size.volumes, claim),
    list(`/apis/${storage}/storageclasses`, storage, "StorageClass", 1, () => ({
      metadata: metadata("gp2", 0),
      provisioner: plugin,
      parameters: { type: "gp2", fsType: "ext4" },
    })),
    list("/api/v1/pods", "v1", "Pod", size.pods, (index) => pod(index, size)),
  ];
}
