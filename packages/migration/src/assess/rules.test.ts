import type { KubeObject, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { assess } from "./assess.ts";
import { findingCodes } from "./finding-codes.ts";
import { InventoryBuilder, inventoryKindOf } from "./inventory-builder.ts";

type Fields = Readonly<Record<string, unknown>>;
const driver = "ebs.csi.aws.com";
const plugin = "kubernetes.io/aws-ebs";
const storage = "storage.k8s.io/v1";

const object = (apiVersion: string, kind: string, name: string, fields: Fields = {}): KubeObject => {
  const { metadata = {}, ...rest } = fields;
  const namespace = [
    "Pod",
    "PersistentVolumeClaim",
    "Deployment",
    "PodDisruptionBudget",
    "ReplicaSet",
  ].includes(kind)
    ? { namespace: "default" }
    : {};
  return {
    apiVersion,
    kind,
    metadata: { name, ...namespace, ...(metadata as object) },
    ...rest,
  } as KubeObject;
};
const node = (name: string, fields: Fields = {}, version = "v1.27.3") =>
  object("v1", "Node", name, {
    metadata: { labels: { "topology.ebs.csi.aws.com/zone": "us-east-1a" } },
    status: { nodeInfo: { kubeletVersion: version } },
    ...fields,
  });
const csiNode = (name: string, drivers: readonly string[], migrated = plugin, count = 25) =>
  object(storage, "CSINode", name, {
    metadata: { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": migrated } },
    spec: { drivers: drivers.map((d) => ({ name: d, nodeID: name, allocatable: { count } })) },
  });
const csiDriver = (fields: Fields = {}) => object(storage, "CSIDriver", driver, { spec: {}, ...fields });
const ebs = (name: string, spec: Fields = {}, metadata: Fields = {}) =>
  object("v1", "PersistentVolume", name, {
    metadata: { annotations: { "pv.kubernetes.io/provisioned-by": plugin }, ...metadata },
    spec: {
      awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-0123456789abcdef0", fsType: "ext4" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      ...spec,
    },
  });
const claim = (name: string, spec: Fields, fields: Fields = {}) =>
  object("v1", "PersistentVolumeClaim", name, { spec, status: { phase: "Bound" }, ...fields });
const pod = (name: string, volumes: readonly Fields[], fields: Fields = {}) =>
  object("v1", "Pod", name, {
    spec: { nodeName: "n1", volumes, ...(fields.spec as object) },
    status: { phase: "Running" },
    metadata: { labels: { app: "a" } },
  });
const claimVolume = { name: "data", persistentVolumeClaim: { claimName: "c1" } };
const inline = { name: "own", awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-00000000000000001" } };
const attachment = (name: string, spec: Fields, fields: Fields = {}) =>
  object(storage, "VolumeAttachment", name, {
    spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv1" }, ...spec },
    ...fields,
  });
const storageClass = (name: string, provisioner: string, parameters: Fields = {}, fields: Fields = {}) =>
  object(storage, "StorageClass", name, { provisioner, parameters, ...fields });

/** A cluster of one node in which all is as it should be. */
const sound: readonly KubeObject[] = [
  node("n1"),
  csiNode("n1", [driver]),
  csiDriver(),
  ebs("pv1"),
  claim("c1", { volumeName: "pv1" }),
  pod("web", [claimVolume]),
];

/** The sound cluster with these objects added, or put in place of those of the same kind and name. */
function codesOf(
  objects: readonly KubeObject[],
  options: {
    readonly without?: readonly string[];
    readonly target?: number;
    readonly secrets?: readonly string[];
  } = {},
): string[] {
  const builder = new InventoryBuilder();
  if (options.secrets !== undefined) builder.lookForSecrets();
  for (const name of options.secrets ?? []) builder.addSecret({ metadata: { name, namespace: "default" } });
  const kept = sound.filter((o) => !(options.without ?? []).includes(`${o.kind} ${o.metadata?.name}`));
  for (const each of [...kept, ...objects]) {
    const kind = inventoryKindOf(each);
    if (kind === undefined) throw new Error(`${each.kind} is not in an inventory`);
    builder.add(kind, each as Stored);
  }
  const inventory = builder.build(new Date("2026-01-01T12:00:00Z"));
  const { findings } = assess(inventory, options.target === undefined ? {} : { targetMinor: options.target });
  return [...new Set(findings.map(({ code }) => code))].filter((code) => code !== "LS1202");
}

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

const zoned = {
  allowedTopologies: [{ matchLabelExpressions: [{ key: "topology.kubernetes.io/zone", values: ["a"] }] }],
};

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
  ["LS1701", () => codesOf([rbd], { target: 31 }), () => codesOf([rbd], { target: 30 })],
  ["LS1702", () => codesOf([], { target: 28 }), () => codesOf([])],
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
    const elsewhere = ["LS1001", "LS1002", "LS1006", "LS1202"];
    const codes = findingCodes.map(({ code }) => code).filter((code) => !elsewhere.includes(code));
    expect(cases.map(([code]) => code)).toEqual(codes);
  });
});
