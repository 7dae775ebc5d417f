/** Clusters in which something has gone wrong already, and one in which nothing has. */
import type { KubeObject } from "@longshore/kube";
import * as of from "./parts.ts";

const ebs = "kubernetes.io/aws-ebs";
const ebsDriver = "ebs.csi.aws.com";
const ebsKey = `topology.${ebsDriver}/zone`;
const ebsDisk = (id: string) => ({
  awsElasticBlockStore: { volumeID: `aws://eu-west-1a/vol-0${id.padStart(16, "0")}`, fsType: "ext4" },
});
const zone = { "topology.kubernetes.io/zone": "eu-west-1a", [ebsKey]: "eu-west-1a" };
const cinder = "kubernetes.io/cinder";
const cinderDriver = "cinder.csi.openstack.org";
const inCinder = (volumeID: string) => ({ cinder: { volumeID, fsType: "ext4" } });

/** 1.27: the driver was lost on a node whose pod writes. The controller manager must not restart. */
export const driverLost: readonly KubeObject[] = [
  of.node("n1", { version: "v1.27.8", labels: zone }),
  of.node("n2", {
    ...{ version: "v1.27.8", labels: zone },
    inUse: [`kubernetes.io/csi/${ebsDriver}^vol-00000000000000002`],
  }),
  of.csiNode("n1", { drivers: { [ebsDriver]: 25 }, migrated: [ebs], topologyKeys: [ebsKey] }),
  of.csiNode("n2", { drivers: {}, migrated: [ebs] }),
  of.driverPod(ebsDriver, "n1"),
  of.driverPod(ebsDriver, "n2", "False"),
  of.volume("pv-2", ebsDisk("2"), { claim: "db/data", by: ebs }),
  of.claim("db", "data", "pv-2"),
  of.pod("db", "pg-0", "n2", [of.ofClaim("data")], { owner: "pg", labels: { app: "pg" } }),
  of.attachment("csi-2", ebsDriver, "n2", "pv-2"),
  of.volume("files", { csi: { driver: "efs.csi.aws.com", volumeHandle: "fs-1" } }, { claim: "db/files" }),
  of.claim("db", "files", "files"),
  of.pod("db", "backup", "n1", [of.ofClaim("files")]),
  of.warning(
    "db",
    "Pod",
    "pg-0",
    "FailedMount",
    `driver name ${ebsDriver} not found in the list of registered CSI drivers`,
  ),
];

/** 1.20, Cinder: a crossing was left half-way, and one node crossed with its disk attached. */
export const halfCrossed: readonly KubeObject[] = [
  of.node("worker-1", { version: "v1.20.2", attached: [`${cinder}/0001`] }),
  of.node("worker-2", {
    version: "v1.20.2",
    unschedulable: true,
    annotations: { "longshore.dev/cordoned-for-crossing": "2026-06-01T09:00:00Z" },
  }),
  of.node("worker-3", { version: "v1.20.2", limits: { "attachable-volumes-cinder": "256" } }),
  of.csiNode("worker-1", { drivers: { [cinderDriver]: 256 }, migrated: [cinder] }),
  of.csiNode("worker-2", { drivers: { [cinderDriver]: 256 }, migrated: [cinder] }),
  of.csiNode("worker-3", { drivers: { [cinderDriver]: 20 } }),
  of.csiDriver(cinderDriver),
  of.storageClass("standard", cinder, { type: "ssd", availability: "nova" }),
  // Made by hand, of a disk that has a volume already.
  of.volume("pv-0003-csi", { csi: { driver: cinderDriver, volumeHandle: "0003", fsType: "ext4" } }),
  ...["0001", "0003"].flatMap((id) => [
    of.volume(`pv-${id}`, inCinder(id), { claim: `app/data-${id}`, by: cinder }),
    of.claim("app", `data-${id}`, `pv-${id}`),
    of.pod("app", `app-${id}`, id === "0001" ? "worker-1" : "worker-3", [of.ofClaim(`data-${id}`)]),
  ]),
  of.attachment("csi-3", cinderDriver, "worker-3", "pv-0003"),
];

/** 1.20, attachments: of a node that is gone, of a volume that is gone, of no pod, and one that fails. */
export const attachments: readonly KubeObject[] = [
  of.node("n1", { version: "v1.20.2", labels: zone }),
  of.csiNode("n1", { drivers: { [ebsDriver]: 25 }, migrated: [ebs], topologyKeys: [ebsKey] }),
  of.csiDriver(ebsDriver),
  of.volume("pv-1", ebsDisk("1"), { claim: "app/one", by: ebs }),
  of.claim("app", "one", "pv-1"),
  of.volume(
    "pv-gone-driver",
    { csi: { driver: "old.csi.example", volumeHandle: "h" } },
    {
      metadata: { finalizers: ["external-attacher/old-csi-example"] },
    },
  ),
  of.attachment("va-idle", ebsDriver, "n1", "pv-1"),
  of.attachment("va-no-node", ebsDriver, "n-deleted", "pv-1"),
  of.attachment("va-no-volume", ebsDriver, "n1", "pv-deleted"),
  of.attachment("va-fails", ebsDriver, "n1", "pv-1", {
    status: {
      attached: false,
      attachError: { time: of.longAgo, message: "VolumeInUse: vol-1 is attached to i-2" },
    },
  }),
  of.pod("app", "idle", "n1", []),
];

/** 1.20: volumes that pods describe themselves, in every kind that makes pods. */
export const ownVolumes: readonly KubeObject[] = [
  of.node("n1", { version: "v1.20.2", labels: zone }),
  of.csiNode("n1", { drivers: {} }),
  of.volume("pv-1", ebsDisk("1")),
  of.claim("ci", "cache", "pv-1"),
  of.pod("ci", "bare", "n1", [{ name: "own", ...ebsDisk("10") }]),
  of.workload("Deployment", "ci", "runner", [{ name: "own", gcePersistentDisk: { pdName: "runner" } }]),
  of.workload("StatefulSet", "ci", "store", [
    { name: "wrong", awsElasticBlockStore: { volumeID: "aws://a/b/c" } },
  ]),
  of.within("ci", "batch/v1beta1", "CronJob", "nightly", {
    spec: {
      schedule: "0 3 * * *",
      jobTemplate: {
        spec: {
          template: {
            spec: of.podSpec([{ name: "share", azureFile: { shareName: "s", secretName: "k" } }], {
              restartPolicy: "Never",
            }),
          },
        },
      },
    },
  }),
];

/** 1.28: pods that custom resources describe. */
export const customResources: readonly KubeObject[] = [
  of.node("n1", { version: "v1.28.4", labels: zone }),
  of.csiNode("n1", { drivers: { [ebsDriver]: 25 }, migrated: [ebs], topologyKeys: [ebsKey] }),
  of.csiDriver(ebsDriver),
  of.volume("pv-1", ebsDisk("1"), { by: ebs }),
  of.claim("ml", "cache", "pv-1"),
  of.pod("ml", "idle", "n1", []),
  of.within("ml", "batch.volcano.sh/v1alpha1", "Job", "train", {
    spec: { tasks: [{ template: { spec: of.podSpec([{ name: "model", ...ebsDisk("5") }]) } }] },
  }),
  of.within("shop", "argoproj.io/v1alpha1", "Rollout", "web", {
    spec: {
      template: { spec: of.podSpec([{ name: "old", awsElasticBlockStore: { volumeID: "aws://x/y/z" } }]) },
    },
  }),
];

/** 1.36, after upgrades: no gate is left, claims wait for provisioners that never came, and deleted objects stay. */
export const afterUpgrades: readonly KubeObject[] = [
  of.node("n1", { version: "v1.36.0" }),
  of.csiNode("n1", { drivers: { "disk.csi.azure.com": 8 }, migrated: [] }),
  of.csiDriver("disk.csi.azure.com"),
  of.storageClass("gp2", ebs, { type: "gp2" }),
  of.claim("app", "forever-pending", undefined, { spec: { storageClassName: "gp2" } }),
  of.claim("app", "half-made", undefined, {
    metadata: { deletionTimestamp: of.longAgo, finalizers: ["longshore.dev/provisioning"] },
    spec: { storageClassName: "gp2" },
  }),
  of.volume("left-over", ebsDisk("7"), {
    by: ebs,
    metadata: {
      deletionTimestamp: of.longAgo,
      finalizers: ["external-provisioner.volume.kubernetes.io/finalizer"],
      annotations: { "pv.kubernetes.io/provisioned-by": ebs },
    },
  }),
  of.object("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent", "snap-old", {
    spec: { driver: ebsDriver, deletionPolicy: "Delete", source: { snapshotHandle: "snap-1" } },
  }),
  of.attachment("va-stuck", ebsDriver, "n1", "left-over", {
    metadata: { deletionTimestamp: of.longAgo, finalizers: ["external-attacher/ebs-csi-aws-com"] },
    status: { attached: true, detachError: { time: of.longAgo, message: "no such instance" } },
  }),
  of.warning(
    "app",
    "PersistentVolumeClaim",
    "forever-pending",
    "ProvisioningFailed",
    "no volume plugin matched",
  ),
  of.pod("app", "idle", "n1", []),
];

/** 1.25: volumes of plugins that Kubernetes has removed or is about to remove, without a driver that takes over. */
export const removedPlugins: readonly KubeObject[] = [
  of.node("n1", { version: "v1.24.9" }),
  of.csiNode("n1", {}),
  of.volume("gluster", { glusterfs: { endpoints: "g", path: "vol" } }, { modes: ["ReadWriteMany"] }),
  of.volume("quobyte", { quobyte: { registry: "q:7861", volume: "v" } }, { modes: ["ReadWriteMany"] }),
  of.claim("app", "c", "gluster"),
  of.pod("app", "reader", "n1", [{ name: "f", flocker: { datasetName: "d" } }]),
  of.workload("Deployment", "app", "web", [{ name: "g", glusterfs: { endpoints: "g", path: "web" } }]),
];

/** 1.22, limits: a node has more volumes than the driver will allow, volumes in pods counted, and the snapshots of an in-tree volume. */
export const limits: readonly KubeObject[] = [
  of.node("n1", { version: "v1.22.3", labels: zone, limits: { "attachable-volumes-aws-ebs": "39" } }),
  of.csiNode("n1", { drivers: { [ebsDriver]: 3 }, topologyKeys: [ebsKey] }),
  of.csiDriver(ebsDriver),
  ...[1, 2, 3].flatMap((index) => [
    of.volume(`pv-${index}`, ebsDisk(`${index}`), { claim: `app/c-${index}`, by: ebs }),
    of.claim("app", `c-${index}`, `pv-${index}`),
    of.pod("app", `p-${index}`, "n1", [of.ofClaim(`c-${index}`)], { owner: "p" }),
  ]),
  of.pod("app", "own", "n1", [{ name: "own", ...ebsDisk("9") }]),
  of.within("app", "snapshot.storage.k8s.io/v1", "VolumeSnapshot", "before-upgrade", {
    spec: { source: { persistentVolumeClaimName: "c-1" } },
    status: { readyToUse: false },
  }),
];

/** 1.32: everything has crossed, and the next upgrade breaks nothing. */
export const sound: readonly KubeObject[] = [
  of.node("n1", { version: "v1.32.1", labels: zone }),
  of.csiNode("n1", { drivers: { [ebsDriver]: 25 }, migrated: [ebs], topologyKeys: [ebsKey] }),
  of.csiDriver(ebsDriver, { fsGroupPolicy: "File" }),
  of.storageClass("gp3", ebsDriver, { type: "gp3" }),
  of.volume("old", ebsDisk("1"), { claim: "app/old", by: ebs, zone: "eu-west-1a" }),
  of.claim("app", "old", "old"),
  of.volume(
    "new",
    { csi: { driver: ebsDriver, volumeHandle: "vol-2", fsType: "ext4" } },
    { claim: "app/new" },
  ),
  of.claim("app", "new", "new"),
  of.pod("app", "web", "n1", [of.ofClaim("old")], { spec: { securityContext: { fsGroup: 1000 } } }),
];
