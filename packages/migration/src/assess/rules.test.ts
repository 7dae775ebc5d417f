import { describe, expect, it } from "vitest";
import { findingCodes } from "./finding-codes.ts";
import { collectionCodes } from "./testing/collection-codes.ts";
import {
  assessed,
  attachment,
  claim,
  claimVolume,
  codesOf,
  csiDriver,
  csiNode,
  driver,
  ebs,
  type Fields,
  inline,
  node,
  object,
  plugin,
  pod,
  storage,
  storageClass,
} from "./testing/sound-cluster.ts";

const long = "2026-01-01T11:00:00Z";
const azureFile = object("v1", "PersistentVolume", "az", {
  spec: {
    azureFile: { shareName: "share", secretName: "azure-secret", secretNamespace: "default" },
    accessModes: ["ReadWriteMany"],
  },
});
const azureParts = [
  csiNode("n1", [driver, "file.csi.azure.com"], `${plugin},kubernetes.io/azure-file`),
  object(storage, "CSIDriver", "file.csi.azure.com", { spec: {} }),
];
const rbd = object("v1", "PersistentVolume", "ceph", {
  spec: {
    rbd: {
      monitors: ["10.0.0.1:6789"],
      image: "kubernetes-dynamic-pvc-1",
      pool: "rbd",
      secretRef: { name: "s", namespace: "default" },
    },
    accessModes: ["ReadWriteOnce"],
  },
});
const budget = (allowed: number) =>
  object("policy/v1", "PodDisruptionBudget", "b", {
    spec: { selector: { matchLabels: { app: "a" } } },
    status: { disruptionsAllowed: allowed },
  });
const deployment = (volume: Fields) =>
  object("apps/v1", "Deployment", "d", { spec: { template: { spec: { volumes: [volume] } } } });

/** The volume of an EBS disk as its driver's own. */
const native = (volumeHandle: string) =>
  object("v1", "PersistentVolume", "native", {
    spec: { csi: { driver, volumeHandle, fsType: "ext4" }, accessModes: ["ReadWriteOnce"] },
  });

const zoned = {
  allowedTopologies: [{ matchLabelExpressions: [{ key: "topology.kubernetes.io/zone", values: ["a"] }] }],
};

const blank = { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-0123456789abcdef0" } };
const share = (source: Fields = {}, spec: Fields = {}) =>
  object("v1", "PersistentVolume", "share", {
    spec: {
      azureFile: { shareName: "share", secretName: "azure-secret", secretNamespace: "default", ...source },
      accessModes: ["ReadWriteMany"],
      claimRef: { namespace: "team", name: "c" },
      ...spec,
    },
  });
const vsphere = object("v1", "PersistentVolume", "vm", {
  spec: {
    vsphereVolume: { volumePath: "[ds] kubevols/disk.vmdk", fsType: "ext4" },
    accessModes: ["ReadWriteOnce"],
  },
});
const vsphereParts = [
  csiNode("n1", [driver, "csi.vsphere.vmware.com"], `${plugin},kubernetes.io/vsphere-volume`),
  object(storage, "CSIDriver", "csi.vsphere.vmware.com", { spec: {} }),
];
const registration = (volumepath: string) =>
  object("cns.vmware.com/v1alpha1", "CnsVSphereVolumeMigration", "id-1", {
    spec: { volumepath, volumeid: "id-1" },
  });
const portworx = (annotations: Fields) =>
  object("v1", "PersistentVolume", "px", {
    metadata: { annotations },
    spec: { portworxVolume: { volumeID: "1", fsType: "ext4" }, accessModes: ["ReadWriteOnce"] },
  });
const snapshotContent = (name: string) =>
  object("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent", "sc", { spec: { driver: name } });
const snapshot = object("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "s", {
  spec: { source: { persistentVolumeClaimName: "c1" } },
});
const event = (reason: string) =>
  object("v1", "Event", "e", {
    involvedObject: { kind: "Pod", namespace: "default", name: "web" },
    ...{ reason, message: "timed out", lastTimestamp: long },
  });
const idle = attachment("a", {}, { metadata: { creationTimestamp: long }, status: { attached: true } });
const attachedInTree = (name: string) => ({
  status: { nodeInfo: { kubeletVersion: "v1.22.3" }, volumesAttached: [{ name, devicePath: "/dev/xvdb" }] },
});
const csiNodeWithKeys = (...topologyKeys: readonly string[]) => ({
  ...csiNode("n1", []),
  spec: { drivers: [{ name: driver, nodeID: "n1", topologyKeys }] },
});
const driverPod = (ready: string) => ({
  ...pod("ebs-csi-node-1", [
    { name: "plugin-dir", hostPath: { path: `/var/lib/kubelet/plugins/${driver}/`, type: "Directory" } },
  ]),
  status: { phase: "Running", conditions: [{ type: "Ready", status: ready }] },
});

/** For each code what raises it in the sound cluster, and what is close to that and does not. */
type Case = readonly [code: string, raises: () => string[], not: () => string[]];
const cases: readonly Case[] = [
  ["LS1003", () => codesOf([node("n1", { status: {} })]), () => codesOf([])],
  ["LS1004", () => codesOf([object("v1", "PersistentVolume", "x", { spec: "text" })]), () => codesOf([])],
  [
    "LS1005",
    () => codesOf([azureFile, ...azureParts]),
    () => codesOf([azureFile, ...azureParts], { secrets: ["azure-secret"] }),
  ],
  [
    "LS1101",
    () => codesOf([csiNode("n1", [])]),
    // In the tree, no driver is needed.
    () => codesOf([csiNode("n1", [], ""), node("n1", {}, "v1.20.0")]),
  ],
  [
    "LS1102",
    () => codesOf([node("n2"), csiNode("n2", [])]),
    () => codesOf([node("n2", { spec: { unschedulable: true } }), csiNode("n2", [], "")]),
  ],
  [
    "LS1103",
    () => codesOf([csiNode("n1", [])]),
    () => codesOf([csiNode("n1", [])], { without: ["Pod web"] }),
  ],
  ["LS1104", () => codesOf([], { without: [`CSIDriver ${driver}`] }), () => codesOf([])],
  [
    "LS1105",
    () =>
      codesOf([
        object("v1", "PersistentVolume", "pv1", {
          spec: { csi: { driver: "x.csi.example", volumeHandle: "h" } },
        }),
      ]),
    () => codesOf([]),
  ],
  ["LS1106", () => codesOf([driverPod("False")]), () => codesOf([driverPod("True")])],
  [
    "LS1201",
    () => codesOf([ebs("bad", { awsElasticBlockStore: { volumeID: "aws://us-east-1a/not-a-volume" } })]),
    () => codesOf([ebs("good")]),
  ],
  ["LS1203", () => codesOf([deployment(inline)]), () => codesOf([deployment({ name: "e", emptyDir: {} })])],
  [
    "LS1204",
    () => codesOf([deployment({ name: "own", awsElasticBlockStore: { volumeID: "aws://x/y/z" } })]),
    () => codesOf([deployment(inline)]),
  ],
  [
    "LS1205",
    () => codesOf([azureFile, ...azureParts], { secrets: ["another"] }),
    () => codesOf([azureFile, ...azureParts], { secrets: ["azure-secret"] }),
  ],
  [
    "LS1206",
    () => codesOf([ebs("far", {}, { labels: { "topology.kubernetes.io/zone": "us-west-2b" } })]),
    () => codesOf([ebs("near", {}, { labels: { "topology.kubernetes.io/zone": "us-east-1a" } })]),
  ],
  [
    "LS1207",
    () => codesOf([ebs("rwx", { accessModes: ["ReadWriteMany"] })]),
    () => codesOf([ebs("rwx", { accessModes: ["ReadWriteMany"], volumeMode: "Block" })]),
  ],
  [
    "LS1208",
    () => codesOf([ebs("static", {}, { annotations: {} })]),
    () => codesOf([ebs("static", { persistentVolumeReclaimPolicy: "Retain" }, { annotations: {} })]),
  ],
  [
    "LS1209",
    () =>
      codesOf([
        ebs("pv1", { accessModes: ["ReadWriteOnce", "ReadOnlyMany"] }),
        pod("web", [claimVolume], { spec: { securityContext: { fsGroup: 1000 } } }),
      ]),
    () =>
      codesOf([
        ebs("pv1", { accessModes: ["ReadWriteOnce", "ReadOnlyMany"] }),
        csiDriver({ spec: { fsGroupPolicy: "File" } }),
        pod("web", [claimVolume], { spec: { securityContext: { fsGroup: 1000 } } }),
      ]),
  ],
  ["LS1210", () => codesOf([rbd]), () => codesOf([])],
  [
    "LS1211",
    () => codesOf([share({}, { volumeMode: "Block" }), ...azureParts]),
    () => codesOf([share(), ...azureParts]),
  ],
  [
    "LS1212",
    () => codesOf([ebs("pv1", blank)]),
    () => codesOf([ebs("pv1", { ...blank, volumeMode: "Block" })]),
  ],
  [
    "LS1213",
    () => codesOf([share({ secretNamespace: undefined }), ...azureParts]),
    () => codesOf([share({ secretNamespace: "team" }), ...azureParts]),
  ],
  [
    "LS1214",
    () => codesOf([vsphere, ...vsphereParts]),
    () => codesOf([vsphere, ...vsphereParts, registration("[ds] kubevols/disk.vmdk")]),
  ],
  [
    "LS1215",
    () => codesOf([portworx({ "openstorage.io/auth-secret-name": "px" })], { target: 31 }),
    () => codesOf([portworx({ "openstorage.io/auth-secret-name": "px" })], { target: 33 }),
  ],
  [
    "LS1216",
    () => codesOf([ebs("pv1"), native("vol-0123456789abcdef0")]),
    () => codesOf([ebs("pv1"), native("vol-0123456789abcdef1")]),
  ],
  [
    "LS1301",
    () => codesOf([storageClass("fast", plugin, { zone: "a" }, zoned)]),
    () => codesOf([storageClass("fast", plugin, {}, zoned)]),
  ],
  [
    "LS1302",
    () => codesOf([storageClass("fast", "kubernetes.io/aws-ebs", { fstype: "xfs" })]),
    () => codesOf([storageClass("fast", driver, { fstype: "xfs" })]),
  ],
  [
    "LS1303",
    () => codesOf([storageClass("s", "kubernetes.io/azure-disk", { storageAccount: "a" })]),
    () => codesOf([storageClass("s", "kubernetes.io/azure-disk", { skuName: "Premium_LRS" })]),
  ],
  [
    "LS1401",
    () =>
      codesOf([
        claim("p", { storageClassName: "s" }, { status: { phase: "Pending" } }),
        storageClass("s", "kubernetes.io/gce-pd"),
      ]),
    () =>
      codesOf([
        claim("p", { storageClassName: "s" }, { status: { phase: "Pending" } }),
        storageClass("s", plugin),
      ]),
  ],
  [
    "LS1402",
    () =>
      codesOf([
        claim(
          "c1",
          { volumeName: "pv1" },
          { metadata: { deletionTimestamp: long, finalizers: ["longshore.dev/provisioning"] } },
        ),
      ]),
    () =>
      codesOf([
        claim("c1", { volumeName: "pv1" }, { metadata: { finalizers: ["longshore.dev/provisioning"] } }),
      ]),
  ],
  ["LS1403", () => codesOf([snapshotContent("gone.csi.example")]), () => codesOf([snapshotContent(driver)])],
  [
    "LS1404",
    () => codesOf([snapshot, node("n1", {}, "v1.20.0"), csiNode("n1", [driver], "")]),
    () => codesOf([snapshot]),
  ],
  ["LS1501", () => codesOf([attachment("a", { nodeName: "gone" })]), () => codesOf([attachment("a", {})])],
  [
    "LS1502",
    () => codesOf([attachment("a", { source: { persistentVolumeName: "gone" } })]),
    () => codesOf([attachment("a", {})]),
  ],
  [
    "LS1503",
    () => codesOf([attachment("a", {}, { metadata: { deletionTimestamp: long } })]),
    () => codesOf([attachment("a", {}, { metadata: { deletionTimestamp: "2026-01-01T11:59:00Z" } })]),
  ],
  [
    "LS1504",
    () => codesOf([attachment("a", {}, { status: { attached: false, attachError: { message: "no" } } })]),
    () => codesOf([attachment("a", {}, { status: { attached: true, attachError: { message: "no" } } })]),
  ],
  [
    "LS1505",
    () => codesOf([ebs("pv1", {}, { finalizers: ["external-attacher/gone-csi-example"] })]),
    () => codesOf([ebs("pv1", {}, { finalizers: ["external-attacher/ebs-csi-aws-com"] })]),
  ],
  ["LS1506", () => codesOf([idle], { without: ["Pod web"] }), () => codesOf([idle])],
  ["LS1507", () => codesOf([event("FailedAttachVolume")]), () => codesOf([event("BackOff")])],
  ["LS1601", () => codesOf([csiNode("n1", [])]), () => codesOf([csiNode("n1", [], "kubernetes.io/cinder")])],
  [
    "LS1602",
    () => codesOf([node("n2"), csiNode("n2", [driver], "")]),
    () => codesOf([node("n2"), csiNode("n2", [driver])]),
  ],
  [
    "LS1603",
    () => codesOf([csiNode("n1", [driver], "")]),
    () => codesOf([csiNode("n1", [driver], ""), node("n1", {}, "v1.22.9")]),
  ],
  [
    "LS1604",
    // A volume of the pod's own counts as well.
    () => codesOf([csiNode("n1", [driver], plugin, 1), pod("other", [inline])]),
    () => codesOf([csiNode("n1", [driver], plugin, 2), pod("other", [inline])]),
  ],
  [
    "LS1605",
    () =>
      codesOf([node("n1", { metadata: { annotations: { "longshore.dev/cordoned-for-crossing": "x" } } })]),
    () => codesOf([node("n1", { spec: { unschedulable: true } })]),
  ],
  [
    "LS1606",
    () => codesOf([node("n1", attachedInTree("kubernetes.io/aws-ebs/vol-1"))]),
    () => codesOf([node("n1", attachedInTree(`kubernetes.io/csi/${driver}^vol-1`))]),
  ],
  [
    "LS1607",
    () => codesOf([csiNodeWithKeys("topology.ebs.csi.aws.com/zone", "example.com/rack")]),
    () => codesOf([csiNodeWithKeys("topology.ebs.csi.aws.com/zone")]),
  ],
  [
    "LS1608",
    () => assessed([]).findings.map(({ code }) => code),
    () => assessed([csiNode("n1", [driver], plugin, Number.NaN)]).findings.map(({ code }) => code),
  ],
  ["LS1701", () => codesOf([rbd], { target: 31 }), () => codesOf([rbd], { target: 30 })],
  [
    "LS1702",
    () => codesOf([node("n1", {}, "v1.22.3"), csiNode("n1", [driver], "")], { target: 23 }),
    () => codesOf([], { target: 28 }),
  ],
  ["LS1801", () => codesOf([budget(0)]), () => codesOf([budget(1)])],
];

describe("the rules of an assessment", () => {
  it("find nothing in a sound cluster but that the plugin is in use", () => {
    expect(codesOf([])).toEqual([]);
  });

  it.each(cases)("%s is raised by its cause, and not by what is close to it", (code, raises, not) => {
    expect(raises()).toContain(code);
    expect(not()).not.toContain(code);
  });

  it("have a case for each code; those of the collection have their own tests", () => {
    const codes = findingCodes.map(({ code }) => code).filter((code) => !collectionCodes.includes(code));
    expect(cases.map(([code]) => code)).toEqual(codes);
  });
});
