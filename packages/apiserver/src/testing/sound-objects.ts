/** Sound objects of the kinds whose rules are held against the real API server, each with much in it that can be wrong. */

/** An object and the collection that it is made in. */
export interface SoundObject {
  readonly path: string;
  readonly object: Record<string, unknown> & {
    readonly metadata: { readonly name: string; readonly [member: string]: unknown };
  };
}

const core = "/api/v1";
const inDefault = `${core}/namespaces/default`;
const storage = "/apis/storage.k8s.io/v1";
const apps = "/apis/apps/v1/namespaces/default";

const volume = (name: string, spec: object): SoundObject => ({
  path: `${core}/persistentvolumes`,
  object: {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name },
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], ...spec },
  },
});

const template = {
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "web", image: "nginx" }] },
};

/** Valid objects of the kinds whose validation is compared with the real API server. */
export const soundObjects: readonly SoundObject[] = [
  volume("d-csi", {
    persistentVolumeReclaimPolicy: "Delete",
    storageClassName: "fast",
    volumeMode: "Filesystem",
    mountOptions: ["ro"],
    claimRef: { namespace: "default", name: "c", uid: "u" },
    csi: {
      driver: "csi.example.com",
      volumeHandle: "h",
      fsType: "ext4",
      volumeAttributes: { a: "b" },
      controllerPublishSecretRef: { name: "s", namespace: "n" },
      nodeStageSecretRef: { name: "s", namespace: "n" },
      nodePublishSecretRef: { name: "s", namespace: "n" },
      controllerExpandSecretRef: { name: "s", namespace: "n" },
    },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [
          {
            matchExpressions: [{ key: "topology.kubernetes.io/zone", operator: "In", values: ["a"] }],
            matchFields: [{ key: "metadata.name", operator: "In", values: ["n"] }],
          },
        ],
      },
    },
  }),
  volume("d-ebs", { awsElasticBlockStore: { volumeID: "v", fsType: "ext4", partition: 1, readOnly: false } }),
  volume("d-gce", { gcePersistentDisk: { pdName: "p", fsType: "ext4", partition: 1 } }),
  volume("d-disk", {
    azureDisk: {
      diskName: "d",
      diskURI: "/subscriptions/x",
      cachingMode: "None",
      fsType: "ext4",
      kind: "Managed",
    },
  }),
  volume("d-file", { azureFile: { secretName: "s", shareName: "f", secretNamespace: "n" } }),
  volume("d-cinder", { cinder: { volumeID: "v", fsType: "ext4", secretRef: { name: "s", namespace: "n" } } }),
  volume("d-vsphere", { vsphereVolume: { volumePath: "[ds] p", fsType: "ext4" } }),
  volume("d-px", { portworxVolume: { volumeID: "v", fsType: "ext4" } }),
  volume("d-host", { hostPath: { path: "/data", type: "Directory" } }),
  volume("d-nfs", { nfs: { server: "s", path: "/p" } }),
  volume("d-local", {
    local: { path: "/mnt/d", fsType: "ext4" },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] }],
      },
    },
  }),
  volume("d-rbd", {
    rbd: { monitors: ["m"], image: "i", pool: "p", user: "u", keyring: "k", secretRef: { name: "s" } },
  }),
  volume("d-iscsi", {
    iscsi: {
      targetPortal: "1.2.3.4:3260",
      iqn: "iqn.2015-02.example.com:test",
      lun: 0,
      initiatorName: "iqn.2015-02.example.com:i",
    },
  }),
  volume("d-fc", { fc: { targetWWNs: ["50060e801049cfd1"], lun: 0 } }),
  volume("d-flex", { flexVolume: { driver: "example.com/d", secretRef: { name: "s", namespace: "n" } } }),
  volume("d-ceph", { cephfs: { monitors: ["m"], path: "/p" } }),
  volume("d-gluster", { glusterfs: { endpoints: "e", path: "p", endpointsNamespace: "n" } }),
  {
    path: `${inDefault}/persistentvolumeclaims`,
    object: {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "d-claim" },
      spec: {
        accessModes: ["ReadWriteOnce", "ReadOnlyMany"],
        resources: { requests: { storage: "1Gi" }, limits: { storage: "2Gi" } },
        storageClassName: "fast",
        volumeMode: "Filesystem",
        volumeName: "pv",
        selector: {
          matchLabels: { a: "b" },
          matchExpressions: [{ key: "tier", operator: "In", values: ["a"] }],
        },
        dataSource: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "snap" },
      },
    },
  },
  {
    path: `${storage}/storageclasses`,
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: "d-class" },
      provisioner: "example.com/p",
      parameters: { type: "ssd" },
      reclaimPolicy: "Delete",
      volumeBindingMode: "WaitForFirstConsumer",
      allowVolumeExpansion: true,
      mountOptions: ["ro"],
      allowedTopologies: [
        { matchLabelExpressions: [{ key: "topology.kubernetes.io/zone", values: ["a", "b"] }] },
        { matchLabelExpressions: [{ key: "topology.kubernetes.io/region", values: ["r"] }] },
      ],
    },
  },
  {
    path: `${storage}/volumeattachments`,
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "VolumeAttachment",
      metadata: { name: "d-attachment" },
      spec: { attacher: "csi.example.com", nodeName: "node-1", source: { persistentVolumeName: "pv" } },
    },
  },
  {
    path: `${storage}/volumeattachments`,
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "VolumeAttachment",
      metadata: { name: "d-inline" },
      spec: {
        attacher: "csi.example.com",
        nodeName: "node-1",
        source: {
          inlineVolumeSpec: {
            accessModes: ["ReadWriteOnce"],
            csi: { driver: "csi.example.com", volumeHandle: "h" },
          },
        },
      },
    },
  },
  {
    path: `${storage}/csinodes`,
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSINode",
      metadata: { name: "d-node" },
      spec: {
        drivers: [
          {
            name: "csi.example.com",
            nodeID: "i-1",
            topologyKeys: ["topology.example.com/zone"],
            allocatable: { count: 3 },
          },
          { name: "other.example.com", nodeID: "i-1", topologyKeys: [] },
        ],
      },
    },
  },
  {
    path: `${storage}/csidrivers`,
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: { name: "csi.example.com" },
      spec: {
        attachRequired: true,
        podInfoOnMount: false,
        fsGroupPolicy: "File",
        volumeLifecycleModes: ["Persistent", "Ephemeral"],
      },
    },
  },
  {
    path: `${core}/nodes`,
    object: {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "d-node", labels: { a: "b" }, annotations: { "example.com/a": "b" } },
      spec: {
        podCIDR: "10.0.0.0/24",
        podCIDRs: ["10.0.0.0/24"],
        providerID: "p://1",
        unschedulable: false,
        taints: [{ key: "example.com/t", value: "v", effect: "NoSchedule" }],
      },
    },
  },
  {
    path: `${inDefault}/pods`,
    object: {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "d-pod", labels: { app: "web" } },
      spec: {
        restartPolicy: "Always",
        terminationGracePeriodSeconds: 5,
        activeDeadlineSeconds: 100,
        dnsPolicy: "ClusterFirst",
        nodeName: "node-1",
        hostname: "h",
        subdomain: "s",
        serviceAccountName: "sa",
        nodeSelector: { a: "b" },
        imagePullSecrets: [{ name: "s" }],
        hostAliases: [{ ip: "1.2.3.4", hostnames: ["h"] }],
        tolerations: [
          { key: "k", operator: "Equal", value: "v", effect: "NoExecute", tolerationSeconds: 3 },
          { operator: "Exists" },
        ],
        securityContext: {
          runAsUser: 1,
          runAsGroup: 1,
          fsGroup: 1,
          supplementalGroups: [1],
          fsGroupChangePolicy: "Always",
        },
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] }],
            },
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 1, preference: { matchExpressions: [{ key: "zone", operator: "Exists" }] } },
            ],
          },
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "web" } } },
            ],
          },
        },
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: "zone",
            whenUnsatisfiable: "DoNotSchedule",
            labelSelector: { matchLabels: { app: "web" } },
          },
        ],
        volumes: [
          { name: "data", persistentVolumeClaim: { claimName: "c", readOnly: true } },
          { name: "scratch", emptyDir: { medium: "Memory", sizeLimit: "1Gi" } },
          {
            name: "conf",
            configMap: { name: "c", defaultMode: 420, items: [{ key: "k", path: "p", mode: 420 }] },
          },
          { name: "sec", secret: { secretName: "s", items: [{ key: "k", path: "p" }] } },
          {
            name: "inline",
            csi: { driver: "csi.example.com", fsType: "ext4", nodePublishSecretRef: { name: "s" } },
          },
          { name: "host", hostPath: { path: "/x", type: "Directory" } },
          {
            name: "down",
            downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] },
          },
          {
            name: "proj",
            projected: {
              sources: [
                { secret: { name: "s" } },
                { serviceAccountToken: { path: "token", expirationSeconds: 3600, audience: "a" } },
              ],
            },
          },
          { name: "ebs", awsElasticBlockStore: { volumeID: "v", partition: 1 } },
        ],
        initContainers: [{ name: "init", image: "busybox" }],
        containers: [
          {
            name: "web",
            image: "nginx",
            imagePullPolicy: "Always",
            terminationMessagePolicy: "File",
            ports: [{ name: "http", containerPort: 80, protocol: "TCP", hostPort: 8080 }],
            env: [
              { name: "A", value: "b" },
              { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
              { name: "C", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
              { name: "D", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1" } } },
            ],
            envFrom: [{ prefix: "P_", configMapRef: { name: "c" } }],
            resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "2", memory: "1Gi" } },
            volumeMounts: [
              { name: "data", mountPath: "/data", subPath: "sub", readOnly: true },
              { name: "scratch", mountPath: "/scratch", mountPropagation: "None" },
            ],
            livenessProbe: {
              httpGet: { path: "/", port: 80, scheme: "HTTP" },
              initialDelaySeconds: 1,
              timeoutSeconds: 1,
            },
            readinessProbe: { exec: { command: ["true"] }, periodSeconds: 3 },
            lifecycle: { preStop: { exec: { command: ["true"] } } },
            securityContext: { runAsUser: 1, privileged: false, capabilities: { add: ["SYS_ADMIN"] } },
          },
        ],
      },
    },
  },
  {
    path: `${apps}/statefulsets`,
    object: {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "d-set" },
      spec: {
        replicas: 1,
        serviceName: "web",
        podManagementPolicy: "Parallel",
        revisionHistoryLimit: 3,
        selector: { matchLabels: { app: "web" }, matchExpressions: [{ key: "app", operator: "Exists" }] },
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } },
        template,
        volumeClaimTemplates: [
          {
            metadata: { name: "data" },
            spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
          },
        ],
      },
    },
  },
  {
    path: `${apps}/deployments`,
    object: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "d-deployment" },
      spec: {
        replicas: 1,
        minReadySeconds: 1,
        progressDeadlineSeconds: 60,
        selector: { matchLabels: { app: "web" } },
        strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: "25%" } },
        template,
      },
    },
  },
  {
    path: `${apps}/daemonsets`,
    object: {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: "d-daemon" },
      spec: {
        selector: { matchLabels: { app: "web" } },
        updateStrategy: { type: "RollingUpdate" },
        template,
      },
    },
  },
  {
    path: `${apps}/replicasets`,
    object: {
      apiVersion: "apps/v1",
      kind: "ReplicaSet",
      metadata: { name: "d-replicas" },
      spec: { replicas: 1, minReadySeconds: 1, selector: { matchLabels: { app: "web" } }, template },
    },
  },
  {
    path: `${apps}/controllerrevisions`,
    object: {
      apiVersion: "apps/v1",
      kind: "ControllerRevision",
      metadata: { name: "d-revision" },
      revision: 1,
      data: { spec: { a: 1 } },
    },
  },
  {
    path: "/apis/batch/v1/namespaces/default/jobs",
    object: {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "d-job" },
      spec: {
        parallelism: 1,
        completions: 1,
        backoffLimit: 3,
        activeDeadlineSeconds: 10,
        template: { spec: { restartPolicy: "Never", containers: [{ name: "web", image: "nginx" }] } },
      },
    },
  },
  {
    path: "/apis/batch/v1beta1/namespaces/default/cronjobs",
    object: {
      apiVersion: "batch/v1beta1",
      kind: "CronJob",
      metadata: { name: "d-cron" },
      spec: {
        schedule: "*/5 * * * *",
        concurrencyPolicy: "Forbid",
        startingDeadlineSeconds: 3,
        jobTemplate: {
          spec: {
            template: { spec: { restartPolicy: "Never", containers: [{ name: "web", image: "nginx" }] } },
          },
        },
      },
    },
  },
  {
    path: "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
    object: {
      apiVersion: "policy/v1beta1",
      kind: "PodDisruptionBudget",
      metadata: { name: "d-budget" },
      spec: { minAvailable: "50%", selector: { matchLabels: { app: "web" } } },
    },
  },
  {
    path: "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    object: {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "d-lease" },
      spec: { holderIdentity: "h", leaseDurationSeconds: 15, leaseTransitions: 1 },
    },
  },
  {
    path: "/apis/events.k8s.io/v1/namespaces/default/events",
    object: {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: "d-event" },
      eventTime: "2021-01-01T00:00:00.000000Z",
      reportingController: "example.com/c",
      reportingInstance: "i",
      action: "Acted",
      reason: "Because",
      type: "Normal",
      note: "n",
      regarding: { kind: "Pod", namespace: "default", name: "p" },
    },
  },
  {
    path: "/apis/scheduling.k8s.io/v1/priorityclasses",
    object: {
      apiVersion: "scheduling.k8s.io/v1",
      kind: "PriorityClass",
      metadata: { name: "d-priority" },
      value: 5,
      globalDefault: false,
      preemptionPolicy: "Never",
    },
  },
  {
    path: `${inDefault}/services`,
    object: {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "d-service" },
      spec: {
        clusterIP: "None",
        selector: { app: "web" },
        ports: [{ name: "http", port: 80, targetPort: 80, protocol: "TCP" }],
      },
    },
  },
  {
    path: `${inDefault}/endpoints`,
    object: {
      apiVersion: "v1",
      kind: "Endpoints",
      metadata: { name: "d-endpoints" },
      subsets: [
        {
          addresses: [{ ip: "10.0.0.1", hostname: "h", nodeName: "n" }],
          ports: [{ name: "http", port: 80, protocol: "TCP" }],
        },
      ],
    },
  },
  {
    path: `${inDefault}/resourcequotas`,
    object: {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "d-quota" },
      spec: { hard: { pods: "1", "requests.cpu": "10" }, scopes: ["NotTerminating"] },
    },
  },
  {
    path: `${inDefault}/limitranges`,
    object: {
      apiVersion: "v1",
      kind: "LimitRange",
      metadata: { name: "d-limits" },
      spec: {
        limits: [
          { type: "Container", min: { cpu: "1" }, max: { cpu: "3" }, default: { cpu: "2" } },
          { type: "PersistentVolumeClaim", max: { storage: "1Gi" } },
        ],
      },
    },
  },
  {
    path: `${inDefault}/replicationcontrollers`,
    object: {
      apiVersion: "v1",
      kind: "ReplicationController",
      metadata: { name: "d-controller" },
      spec: { replicas: 1, selector: { app: "web" }, template },
    },
  },
  {
    path: `${inDefault}/secrets`,
    object: {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "d-secret" },
      type: "Opaque",
      data: { key: "dmFsdWU=" },
      immutable: false,
    },
  },
  {
    path: `${inDefault}/configmaps`,
    object: {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "d-map", labels: { a: "b" }, annotations: { a: "b" }, finalizers: ["example.com/f"] },
      data: { key: "value" },
    },
  },
  {
    path: `${core}/namespaces`,
    object: {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "d-space" },
      spec: { finalizers: ["kubernetes"] },
    },
  },
];
