/** A small cluster in which all is as it should be, and the parts of which tests make others. */
import type { KubeObject, Stored } from "@longshore/kube";
import { type Assessment, type AssessOptions, assess } from "../assess.ts";
import { InventoryBuilder } from "../inventory-builder.ts";

export type Fields = Readonly<Record<string, unknown>>;
export const driver = "ebs.csi.aws.com";
export const plugin = "kubernetes.io/aws-ebs";
export const storage = "storage.k8s.io/v1";

export const object = (apiVersion: string, kind: string, name: string, fields: Fields = {}): KubeObject => {
  const { metadata = {}, ...rest } = fields;
  const namespace = [
    "Pod",
    "PersistentVolumeClaim",
    "Deployment",
    "PodDisruptionBudget",
    "ReplicaSet",
    "VolumeSnapshot",
    "Event",
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
export const node = (name: string, fields: Fields = {}, version = "v1.27.3") =>
  object("v1", "Node", name, {
    metadata: { labels: { "topology.ebs.csi.aws.com/zone": "us-east-1a" } },
    status: { nodeInfo: { kubeletVersion: version } },
    ...fields,
  });
export const csiNode = (name: string, drivers: readonly string[], migrated = plugin, count = 25) =>
  object(storage, "CSINode", name, {
    metadata: { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": migrated } },
    spec: { drivers: drivers.map((d) => ({ name: d, nodeID: name, allocatable: { count } })) },
  });
export const csiDriver = (fields: Fields = {}) =>
  object(storage, "CSIDriver", driver, { spec: {}, ...fields });
export const ebs = (name: string, spec: Fields = {}, metadata: Fields = {}) =>
  object("v1", "PersistentVolume", name, {
    metadata: { annotations: { "pv.kubernetes.io/provisioned-by": plugin }, ...metadata },
    spec: {
      awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-0123456789abcdef0", fsType: "ext4" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      ...spec,
    },
  });
export const claim = (name: string, spec: Fields, fields: Fields = {}) =>
  object("v1", "PersistentVolumeClaim", name, { spec, status: { phase: "Bound" }, ...fields });
export const pod = (name: string, volumes: readonly Fields[], fields: Fields = {}) =>
  object("v1", "Pod", name, {
    spec: { nodeName: "n1", volumes, ...(fields.spec as object) },
    status: { phase: "Running" },
    metadata: { labels: { app: "a" } },
  });
export const claimVolume = { name: "data", persistentVolumeClaim: { claimName: "c1" } };
export const inline = {
  name: "own",
  awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-00000000000000001" },
};
export const attachment = (name: string, spec: Fields, fields: Fields = {}) =>
  object(storage, "VolumeAttachment", name, {
    spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv1" }, ...spec },
    ...fields,
  });
export const storageClass = (
  name: string,
  provisioner: string,
  parameters: Fields = {},
  fields: Fields = {},
) => object(storage, "StorageClass", name, { provisioner, parameters, ...fields });

/** A cluster of one node in which all is as it should be. */
const sound: readonly KubeObject[] = [
  node("n1"),
  csiNode("n1", [driver]),
  csiDriver(),
  ebs("pv1"),
  claim("c1", { volumeName: "pv1" }),
  pod("web", [claimVolume]),
];

/** What {@link assessed} is given besides the objects. */
export interface Judged {
  /** Objects of the sound cluster that are left out, such as `Pod web`. */
  readonly without?: readonly string[];
  readonly target?: number;
  readonly suppressions?: AssessOptions["suppressions"];
  /** Names of Secrets in `default`; without them Secrets were not looked for. */
  readonly secrets?: readonly string[];
}

/** The sound cluster with these objects added, or put in place of those of the same kind and name. */
export function assessed(objects: readonly KubeObject[], options: Judged = {}): Assessment {
  const builder = new InventoryBuilder();
  if (options.secrets !== undefined) builder.lookForSecrets();
  for (const name of options.secrets ?? []) builder.addSecret({ metadata: { name, namespace: "default" } });
  const kept = sound.filter((o) => !(options.without ?? []).includes(`${o.kind} ${o.metadata?.name}`));
  for (const each of [...kept, ...objects]) {
    const kind = builder.kindOf(each);
    if (kind === undefined) throw new Error(`${each.kind} is not in an inventory`);
    builder.add(kind, each as Stored);
  }
  const inventory = builder.build(new Date("2026-01-01T12:00:00Z"));
  const { target, suppressions = [] } = options;
  return assess(inventory, { suppressions, ...(target === undefined ? {} : { targetMinor: target }) });
}

/** The codes that are found, but for those that a sound cluster with an in-tree plugin has. */
export function codesOf(objects: readonly KubeObject[], options: Judged = {}): string[] {
  const codes = new Set(assessed(objects, options).findings.map(({ code }) => code));
  return [...codes].filter((code) => code !== "LS1202" && code !== "LS1608");
}
