import { expect, it } from "vitest";
import { collectManifests } from "../assess/collect-manifests.ts";
import { clusterStatusOf } from "./cluster-status.ts";

const storage = "storage.k8s.io/v1";
const attachedAt = "2026-01-01T10:00:00Z";
const node = (name: string, status: object = {}, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name },
  status: {
    conditions: [{ type: "Ready", status: "True" }],
    nodeInfo: { kubeletVersion: "v1.20.2" },
    ...status,
  },
  ...more,
});
const csiNode = (name: string, plugins: string) => ({
  apiVersion: storage,
  kind: "CSINode",
  metadata: { name, annotations: { "storage.alpha.kubernetes.io/migrated-plugins": plugins } },
  spec: { drivers: [{ name: "ebs.csi.aws.com", nodeID: `i-${name}` }] },
});
const pv = (name: string, volumeID: string) => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name },
  spec: { awsElasticBlockStore: { volumeID }, claimRef: { namespace: "default", name: `claim-${name}` } },
  status: { phase: "Bound" },
});
const claim = (name: string) => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { namespace: "default", name: `claim-${name}` },
  spec: { volumeName: name },
});
const pod = (name: string, nodeName: string, volume: object) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { namespace: "default", name },
  spec: { nodeName, volumes: [{ name: "data", ...volume }] },
  status: { phase: "Running" },
});
const bound = (name: string) => ({ persistentVolumeClaim: { claimName: `claim-${name}` } });
const attachment = (pvName: string, nodeName: string, metadata: object, status: object) => ({
  apiVersion: storage,
  kind: "VolumeAttachment",
  metadata: { name: `csi-${pvName}`, creationTimestamp: attachedAt, ...metadata },
  spec: { attacher: "ebs.csi.aws.com", nodeName, source: { persistentVolumeName: pvName } },
  status,
});

async function* inOnePiece(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

async function statusOf(...objects: readonly object[]) {
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
  const input = { name: "dump", bytes: inOnePiece(list) };
  const inventory = await collectManifests([input], { now: new Date("2026-01-01T12:00:00Z") });
  return clusterStatusOf(inventory);
}

it("shows the path of each volume on its node, by the node's annotation", async () => {
  const status = await statusOf(
    node("n1"),
    node("n2", {}, { spec: { unschedulable: true } }),
    csiNode("n1", "kubernetes.io/aws-ebs"),
    csiNode("n2", ""),
    pv("a", "vol-a"),
    pv("b", "vol-b"),
    claim("a"),
    claim("b"),
    pod("p1", "n1", bound("a")),
    pod("p2", "n2", bound("b")),
    pod("p3", "n2", { awsElasticBlockStore: { volumeID: "vol-c" } }),
  );
  expect(status.nodes).toMatchObject([
    { name: "n1", ready: true, migratedPlugins: ["kubernetes.io/aws-ebs"], drivers: ["ebs.csi.aws.com"] },
    { name: "n2", cordoned: "other", migratedPlugins: [], kubelet: "v1.20.2" },
  ]);
  expect(status.volumes.map(({ name, uses }) => [name, uses])).toEqual([
    ["a", [{ nodeName: "n1", pod: "default/p1", path: "csi" }]],
    ["b", [{ nodeName: "n2", pod: "default/p2", path: "in-tree" }]],
    ["volume data of Pod default/p3", [{ nodeName: "n2", pod: "default/p3", path: "in-tree" }]],
  ]);
  expect(status.volumes[0]).toMatchObject({
    claim: "default/claim-a",
    phase: "Bound",
    form: "in-tree",
    plugin: "kubernetes.io/aws-ebs",
    driver: "ebs.csi.aws.com",
  });
});

it("says of a node that is not on the path that its gates want what keeps it from it", async () => {
  const pending = { type: "VolumeMigrationPending", message: "kubernetes.io/aws-ebs stays on in-tree" };
  const status = await statusOf(
    node("n1", { conditions: [{ ...pending, status: "True" }] }),
    node("n2", { conditions: [{ ...pending, status: "False" }] }),
  );
  expect(status.nodes.map(({ migrationPending }) => migrationPending)).toEqual([pending.message, undefined]);
});

it("names who holds a disk since when, and why it is not released", async () => {
  const inTree = "kubernetes.io/aws-ebs/vol-b";
  const status = await statusOf(
    node("n1"),
    node("n2", { volumesAttached: [{ name: inTree, devicePath: "" }], volumesInUse: [inTree] }),
    csiNode("n1", "kubernetes.io/aws-ebs"),
    pv("a", "vol-a"),
    pv("b", "vol-b"),
    pv("c", "vol-c"),
    pv("d", "vol-d"),
    claim("b"),
    pod("p2", "n2", bound("b")),
    attachment(
      "a",
      "n1",
      { deletionTimestamp: "2026-01-01T11:00:00Z", finalizers: ["external-attacher/ebs-csi-aws-com"] },
      { attached: true, detachError: { message: "the disk is busy" } },
    ),
    attachment(
      "c",
      "n1",
      { deletionTimestamp: "2026-01-01T11:00:00Z", finalizers: ["external-attacher/ebs-csi-aws-com"] },
      { attached: true },
    ),
  );
  const [a, b, c, d] = status.volumes;
  expect(a?.holders).toEqual([
    {
      nodeName: "n1",
      by: "VolumeAttachment csi-a",
      since: attachedAt,
      attached: true,
      because: [
        "it is being deleted since 2026-01-01T11:00:00Z, held by external-attacher/ebs-csi-aws-com",
        "the disk is busy",
      ],
    },
  ]);
  expect(c?.holders[0]?.because).toEqual([
    "it is being deleted since 2026-01-01T11:00:00Z, held by external-attacher/ebs-csi-aws-com, and no error was reported: see whether the attacher of ebs.csi.aws.com runs",
  ]);
  expect(d?.holders).toEqual([]);
  expect(b?.holders).toEqual([
    {
      nodeName: "n2",
      by: "Node n2, status.volumesAttached",
      attached: true,
      because: ["Pod default/p2 uses it", "the node's agent reports it in use"],
    },
  ]);
});

it("shows who holds a pod's own volume, and disks that no volume of the API is", async () => {
  const own = "kubernetes.io/aws-ebs/vol-c";
  const gone = "kubernetes.io/csi/ebs.csi.aws.com^vol-x";
  const attached = [own, gone, "kubernetes.io/iscsi/other"].map((name) => ({ name, devicePath: "" }));
  const status = await statusOf(
    node("n1", { volumesAttached: attached }),
    pv("a", "vol-a"),
    claim("a"),
    pod("p3", "n1", { awsElasticBlockStore: { volumeID: "vol-c" } }),
    attachment("of-a-volume-that-is-gone", "n1", {}, { attached: true }),
    {
      ...attachment("", "n1", {}, { attached: true }),
      metadata: { name: "csi-own", creationTimestamp: attachedAt },
      spec: {
        attacher: "ebs.csi.aws.com",
        nodeName: "n1",
        source: { inlineVolumeSpec: { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-c" } } },
      },
    },
  );
  expect(status.volumes.slice(1)).toMatchObject([
    {
      name: "volume data of Pod default/p3",
      handle: "vol-c",
      holders: [{ nodeName: "n1", by: "VolumeAttachment csi-own", because: ["Pod default/p3 uses it"] }],
    },
  ]);
  expect(status.strays.map(({ disk, holder }) => `${disk} by ${holder.by}`)).toEqual([
    "PersistentVolume of-a-volume-that-is-gone by VolumeAttachment csi-of-a-volume-that-is-gone",
    `${gone} by Node n1, status.volumesAttached`,
  ]);
});
