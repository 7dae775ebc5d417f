/** Objects for the tests with kubectl: a few of each kind that this field touches, with what others would write to them. */

/** Manifests, in YAML. */
export const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {node-role.kubernetes.io/worker: "", topology.kubernetes.io/zone: z1}}
---
apiVersion: v1
kind: Node
metadata: {name: node-2}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-ebs, labels: {tier: old}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce, ReadOnlyMany]
  awsElasticBlockStore: {volumeID: aws://us-east-1a/vol-1, fsType: ext4, partition: 1}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z1, z2]}]}]}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-csi}
spec:
  capacity: {storage: 3Gi}
  accessModes: [ReadWriteMany]
  storageClassName: gold
  volumeMode: Block
  persistentVolumeReclaimPolicy: Delete
  claimRef: {namespace: shop, name: data, kind: PersistentVolumeClaim, apiVersion: v1}
  csi: {driver: csi.example.com, volumeHandle: h1, fsType: xfs, volumeAttributes: {size: big}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, labels: {app: db}}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, storageClassName: gold, volumeName: pv-csi, volumeMode: Block}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gold, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: csi.example.com
parameters: {type: io1}
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: csi.example.com}
spec: {attachRequired: true, podInfoOnMount: true, volumeLifecycleModes: [Persistent, Ephemeral]}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: node-1}
spec: {drivers: [{name: csi.example.com, nodeID: n1, topologyKeys: [zone], allocatable: {count: 5}}]}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: va-1}
spec: {attacher: csi.example.com, nodeName: node-1, source: {persistentVolumeName: pv-csi}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden, namespace: shop}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  nodeName: node-1
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.example.com/a:1
    ports: [{containerPort: 80}]
    env: [{name: A, value: "1"}]
    volumeMounts: [{name: data, mountPath: /data}]
  - {name: side, image: "registry.example.com/b:2"}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: cfg, configMap: {name: settings}}
---
apiVersion: v1
kind: Pod
metadata: {name: waiting, namespace: shop, labels: {app: web}}
spec: {containers: [{name: main, image: x}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: "db:1"}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: shop}
spec: {replicas: 3, selector: {matchLabels: {app: front}}, template: {metadata: {labels: {app: front}}, spec: {containers: [{name: main, image: "f:1"}]}}}
---
apiVersion: v1
kind: Event
metadata: {name: web.1, namespace: shop}
involvedObject: {kind: Pod, namespace: shop, name: web, apiVersion: v1}
reason: Pulled
message: "image is there"
type: Normal
source: {component: kubelet, host: node-1}
count: 3
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:01:00Z"
`;

const at = "2026-01-01T00:00:00Z";

/** What controllers and kubelets write: the path of the object, and its status. */
export const statuses: readonly (readonly [path: string, status: object])[] = [
  [
    "/api/v1/nodes/node-1",
    {
      conditions: [{ type: "Ready", status: "True", reason: "KubeletReady", lastTransitionTime: at }],
      addresses: [{ type: "InternalIP", address: "10.0.0.1" }],
      capacity: { cpu: "4", memory: "8Gi", pods: "110" },
      allocatable: { cpu: "4", memory: "8Gi", pods: "110" },
      nodeInfo: {
        kubeletVersion: "v1.20.2",
        osImage: "Linux",
        kernelVersion: "5.1",
        containerRuntimeVersion: "x://1",
        architecture: "amd64",
        operatingSystem: "linux",
        machineID: "m",
        systemUUID: "s",
        bootID: "b",
        kubeProxyVersion: "v1",
      },
    },
  ],
  ["/api/v1/persistentvolumes/pv-csi", { phase: "Bound" }],
  [
    "/api/v1/namespaces/shop/persistentvolumeclaims/data",
    { phase: "Bound", capacity: { storage: "3Gi" }, accessModes: ["ReadWriteMany"] },
  ],
  [
    "/api/v1/namespaces/shop/pods/web",
    {
      phase: "Running",
      podIP: "10.1.0.5",
      podIPs: [{ ip: "10.1.0.5" }],
      conditions: [{ type: "Ready", status: "True" }],
      containerStatuses: [
        {
          name: "main",
          ready: true,
          restartCount: 3,
          image: "a",
          imageID: "",
          state: { running: { startedAt: at } },
        },
        {
          name: "side",
          ready: false,
          restartCount: 1,
          image: "b",
          imageID: "",
          state: { waiting: { reason: "CrashLoopBackOff" } },
        },
      ],
    },
  ],
  ["/apis/storage.k8s.io/v1/volumeattachments/va-1", { attached: true }],
];
