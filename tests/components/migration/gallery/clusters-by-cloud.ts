/** Clusters with the volumes of one provider each, shortly before an upgrade. */
import type { KubeObject } from "@longshore/kube";
import * as of from "./parts.ts";

const ebs = "kubernetes.io/aws-ebs";
const ebsDriver = "ebs.csi.aws.com";
const ebsDisk = (id: string, zone: string) => ({
  awsElasticBlockStore: { volumeID: `aws://${zone}/vol-0${id.padStart(16, "0")}`, fsType: "ext4" },
});
const zoned = (zone: string, key: string) => ({ "topology.kubernetes.io/zone": zone, [key]: zone });
const ebsKey = `topology.${ebsDriver}/zone`;

/** Elastic Block Store on 1.22: the driver runs on two of three nodes, and 1.23 redirects the plugin. */
export const awsBefore: readonly KubeObject[] = [
  ...["a", "b", "c"].flatMap((letter) => {
    const labels =
      letter === "c" ? { "topology.kubernetes.io/zone": "eu-west-1c" } : zoned(`eu-west-1${letter}`, ebsKey);
    const limits = { "attachable-volumes-aws-ebs": "39" };
    const drivers: Readonly<Record<string, number>> = letter === "c" ? {} : { [ebsDriver]: 25 };
    return [
      of.node(`ip-10-0-0-${letter}`, { version: "v1.22.17", labels, limits }),
      of.csiNode(`ip-10-0-0-${letter}`, { drivers, topologyKeys: [ebsKey] }),
    ];
  }),
  of.node("ip-10-0-0-d", { version: "v1.22.17", labels: zoned("eu-west-1a", ebsKey) }),
  of.csiNode("ip-10-0-0-d", {}),
  of.csiDriver(ebsDriver),
  of.storageClass(
    "both-ways",
    ebs,
    { zone: "eu-west-1a" },
    {
      allowedTopologies: [
        { matchLabelExpressions: [{ key: "topology.kubernetes.io/zone", values: ["eu-west-1b"] }] },
      ],
    },
  ),
  of.volume("many-writers", ebsDisk("50", "eu-west-1a"), { modes: ["ReadWriteMany"], by: ebs }),
  of.storageClass("gp2", ebs, { type: "gp2", fsType: "ext4", encrypted: "true" }),
  ...["a", "b", "c"].flatMap((letter, index) => [
    of.volume(`pvc-orders-${index}`, ebsDisk(`${index}`, `eu-west-1${letter}`), {
      ...{ claim: `shop/data-orders-${index}`, by: ebs, zone: `eu-west-1${letter}` },
    }),
    of.claim("shop", `data-orders-${index}`, `pvc-orders-${index}`),
    of.pod("shop", `orders-${index}`, `ip-10-0-0-${letter}`, [of.ofClaim(`data-orders-${index}`)], {
      ...{ owner: "orders", labels: { app: "orders" } },
    }),
  ]),
  of.workload("StatefulSet", "shop", "orders", []),
  of.budget("shop", "orders", 0),
  of.volume("static-archive", ebsDisk("99", "eu-west-1a"), { claim: "shop/archive" }),
  of.claim("shop", "archive", "static-archive"),
];

/** Persistent Disks on 1.22: zones as parameters, a regional class, readers on several nodes. */
export const gcePd: readonly KubeObject[] = [
  ...["b", "c"].flatMap((letter) => [
    of.node(`gke-pool-${letter}`, {
      version: "v1.22.12-gke.2300",
      labels: zoned(
        `europe-west1-${letter}`,
        // On the second node the label of the driver got lost.
        letter === "b" ? "topology.gke.io/zone" : "topology.kubernetes.io/zone",
      ),
      limits: { "attachable-volumes-gce-pd": "127" },
    }),
    of.csiNode(`gke-pool-${letter}`, {
      ...{ drivers: { "pd.csi.storage.gke.io": 127 }, topologyKeys: ["topology.gke.io/zone"] },
    }),
  ]),
  of.storageClass("zonal", "kubernetes.io/gce-pd", {
    type: "pd-ssd",
    zones: "europe-west1-b,europe-west1-c",
  }),
  of.storageClass("regional", "kubernetes.io/gce-pd", { "replication-type": "regional-pd", fstype: "xfs" }),
  of.volume(
    "catalog",
    { gcePersistentDisk: { pdName: "catalog", readOnly: true } },
    {
      ...{ modes: ["ReadOnlyMany"], claim: "web/catalog", zone: "europe-west1-b" },
    },
  ),
  of.claim("web", "catalog", "catalog"),
  of.volume("far-away", { gcePersistentDisk: { pdName: "far", fsType: "ext4" } }, { zone: "us-central1-a" }),
  of.pod("web", "site-1", "gke-pool-b", [of.ofClaim("catalog")], {
    spec: { securityContext: { fsGroup: 1000 } },
  }),
];

/** Azure on 1.23: a disk in a storage account, shares whose secrets are elsewhere, a class that the driver rejects. */
export const azure: readonly KubeObject[] = [
  of.node("aks-1", { version: "v1.23.15", limits: { "attachable-volumes-azure-disk": "8" } }),
  of.csiNode("aks-1", {
    ...{
      drivers: { "disk.csi.azure.com": 8, "file.csi.azure.com": 0 },
      migrated: ["kubernetes.io/azure-disk"],
    },
    topologyKeys: [],
  }),
  of.csiDriver("disk.csi.azure.com"),
  of.csiDriver("file.csi.azure.com", { attachRequired: false }),
  of.volume("old-blob", {
    azureDisk: { diskName: "old.vhd", diskURI: "https://a.blob.example/vhds/old.vhd", kind: "Dedicated" },
  }),
  of.volume(
    "managed",
    {
      azureDisk: {
        ...{ diskName: "m", kind: "Managed", cachingMode: "ReadOnly", fsType: "ext4" },
        diskURI: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/m",
      },
    },
    { claim: "db/m", by: "kubernetes.io/azure-disk" },
  ),
  of.claim("db", "m", "managed"),
  of.volume(
    "reports",
    { azureFile: { shareName: "reports", secretName: "azure-storage-account-x-secret" } },
    { modes: ["ReadWriteMany"], claim: "office/reports" },
  ),
  of.claim("office", "reports", "reports"),
  of.volume(
    "block-share",
    { azureFile: { shareName: "b", secretName: "k", secretNamespace: "office" } },
    { modes: ["ReadWriteMany"], spec: { volumeMode: "Block" } },
  ),
  of.pod("db", "sql-0", "aks-1", [of.ofClaim("m")]),
  of.storageClass("unmanaged", "kubernetes.io/azure-disk", { storageAccount: "x", skuName: "Standard_LRS" }),
  of.secret("db", "other"),
  of.workload("Deployment", "office", "viewer", [
    { name: "files", azureFile: { shareName: "inline", secretName: "inline-secret" } },
  ]),
];

/** vSphere on 1.24: the driver is there and knows one of two disks; thick disks are asked for. */
export const vsphere: readonly KubeObject[] = [
  of.node("esx-worker-1", { version: "v1.24.17", limits: { "attachable-volumes-vsphere-volume": "59" } }),
  of.csiNode("esx-worker-1", { drivers: { "csi.vsphere.vmware.com": 59 } }),
  of.csiDriver("csi.vsphere.vmware.com"),
  ...["known", "unknown"].map((name) =>
    of.volume(name, { vsphereVolume: { volumePath: `[nfs] kubevols/${name}.vmdk`, fsType: "ext4" } }),
  ),
  of.object("cns.vmware.com/v1alpha1", "CnsVSphereVolumeMigration", "c7e0-known", {
    spec: { volumepath: "[nfs] kubevols/known.vmdk", volumeid: "c7e0-known" },
  }),
  of.storageClass("thick", "kubernetes.io/vsphere-volume", {
    diskformat: "eagerzeroedthick",
    datastore: "nfs",
  }),
  of.workload("DaemonSet", "tools", "agent", [
    { name: "own", vsphereVolume: { volumePath: "[nfs] kubevols/own.vmdk", storagePolicyName: "gold" } },
  ]),
  of.pod("tools", "idle", "esx-worker-1", []),
  of.claim("tools", "waiting", undefined, { spec: { storageClassName: "thick" } }),
];

/** Ceph on 1.30: the plugin is gone in 1.31, and so is CephFS; the ids of clusters are to be entered before that. */
export const ceph: readonly KubeObject[] = [
  of.node("rook-1", { version: "v1.30.4" }),
  of.csiNode("rook-1", { drivers: { "rbd.csi.ceph.com": 0 } }),
  of.csiDriver("rbd.csi.ceph.com"),
  of.volume(
    "kubernetes-dynamic-pvc-1",
    {
      rbd: {
        ...{ monitors: ["10.1.0.1:6789", "10.1.0.2:6789"], image: "kubernetes-dynamic-pvc-1", pool: "kube" },
        ...{ user: "kube", fsType: "ext4", secretRef: { name: "ceph-user", namespace: "db" } },
      },
    },
    { claim: "db/data" },
  ),
  of.claim("db", "data", "kubernetes-dynamic-pvc-1"),
  of.volume(
    "shared",
    { cephfs: { monitors: ["10.1.0.1:6789"], user: "admin" } },
    { modes: ["ReadWriteMany"] },
  ),
  of.storageClass("rbd", "kubernetes.io/rbd", {
    ...{ monitors: "10.1.0.1:6789,10.1.0.2:6789", pool: "kube", adminId: "admin", userId: "kube" },
    ...{ adminSecretName: "ceph-admin", adminSecretNamespace: "kube-system", userSecretName: "ceph-user" },
  }),
  of.pod("db", "pg-0", "rook-1", [of.ofClaim("data")]),
];

/** Portworx on 1.30, with security: 1.31 redirects the plugin. */
export const portworx: readonly KubeObject[] = [
  of.node("px-1", { version: "v1.30.2" }),
  of.csiNode("px-1", { drivers: { "pxd.portworx.com": 0 } }),
  of.csiDriver("pxd.portworx.com", { attachRequired: false }),
  of.volume(
    "px-data",
    { portworxVolume: { volumeID: "832710", fsType: "ext4" } },
    {
      claim: "db/px-data",
      metadata: {
        annotations: {
          "openstorage.io/auth-secret-name": "px-user-token",
          "openstorage.io/auth-secret-namespace": "portworx",
        },
      },
    },
  ),
  of.claim("db", "px-data", "px-data"),
  of.storageClass("px", "kubernetes.io/portworx-volume", {
    ...{ repl: "3", "openstorage.io/auth-secret-name": "px-user-token" },
    "openstorage.io/auth-secret-namespace": "portworx",
  }),
  of.pod("db", "mongo-0", "px-1", [of.ofClaim("px-data")]),
];
