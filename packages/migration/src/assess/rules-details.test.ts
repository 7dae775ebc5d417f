/** What findings say beyond their code: evidence, both sides, and the further causes of a code. */
import { describe, expect, it } from "vitest";
import {
  assessed,
  attachment,
  claimVolume,
  codesOf,
  csiNode,
  driver,
  ebs,
  node,
  object,
  plugin,
  pod,
  storageClass,
} from "./testing/sound-cluster.ts";

const findingsOf = (code: string, ...args: Parameters<typeof assessed>) =>
  assessed(...args).findings.filter((finding) => finding.code === code);

describe("a StorageClass and what it becomes", () => {
  it("stand side by side: kept, renamed, moved, dropped, added and rejected", () => {
    const ebsClass = storageClass("fast", plugin, { type: "gp2", fsType: "xfs", zones: "a,b" });
    const [changed] = findingsOf("LS1302", [ebsClass]);
    expect(changed?.becomes).toMatchObject([
      { field: "provisioner", value: plugin, to: "provisioner", toValue: driver, fate: "renamed" },
      { field: "parameters[type]", value: "gp2", to: "parameters[type]", toValue: "gp2", fate: "kept" },
      {
        ...{ field: "parameters[fsType]", value: "xfs", to: "parameters[csi.storage.k8s.io/fstype]" },
        ...{ toValue: "xfs", fate: "renamed" },
      },
      {
        ...{ field: "parameters[zones]", value: "a,b", toValue: "a,b", fate: "moved" },
        to: `allowedTopologies[topology.${driver}/zone]`,
      },
    ]);
    const vsphere = storageClass("thick", "kubernetes.io/vsphere-volume", {
      diskformat: "eagerzeroedthick",
      unknown: "x",
    });
    const fates = findingsOf("LS1302", [vsphere])[0]?.becomes?.map(({ field, fate }) => [field, fate]);
    expect(fates).toEqual([
      ["provisioner", "renamed"],
      ["parameters[diskformat]", "rejected"],
      ["parameters[unknown]", "dropped"],
      ["", "added"],
    ]);
    expect(findingsOf("LS1303", [vsphere])).toMatchObject([
      { field: "parameters[diskformat]", evidence: expect.stringContaining("thin disks only") },
    ]);
  });
});

describe("the further causes of a code", () => {
  it("LS1207: modes that no attacher takes together, and readers on several nodes", () => {
    const modes = (...accessModes: string[]) =>
      findingsOf("LS1207", [ebs("pv1", { accessModes })])[0]?.evidence;
    expect(modes("ReadWriteOnce", "ReadOnlyMany")).toContain("CSI has no mode that is both");
    expect(modes("ReadOnlyMany")).toContain("several nodes for reading");
    expect(modes("ReadWriteOnce")).toBeUndefined();
    const disk = { pdName: "d", fsType: "ext4" };
    const gce = object("v1", "PersistentVolume", "g", {
      spec: { gcePersistentDisk: disk, accessModes: ["ReadOnlyMany"] },
    });
    expect(findingsOf("LS1207", [gce])).toEqual([]);
  });

  it("LS1205: secrets of volumes in pods, and of classes, in the namespace where the driver looks", () => {
    const share = { name: "s", azureFile: { secretName: "share-key", shareName: "files" } };
    const deployment = object("apps/v1", "Deployment", "d", {
      spec: { template: { spec: { volumes: [share] } } },
    });
    const rbd = storageClass("ceph", "kubernetes.io/rbd", {
      ...{ monitors: "10.0.0.1:6789", pool: "rbd", adminId: "admin" },
      ...{ adminSecretName: "ceph", adminSecretNamespace: "kube-system" },
    });
    const evidence = findingsOf("LS1205", [deployment, rbd], { secrets: [] }).map(
      ({ object: name, evidence: seen }) => `${name}: ${seen}`,
    );
    expect(evidence).toContain("Deployment default/d: there is no Secret default/share-key");
    expect(evidence).toContain("StorageClass ceph: there is no Secret kube-system/ceph");
    expect(findingsOf("LS1205", [deployment], { secrets: ["share-key"] })).toEqual([]);
  });

  it("LS1505: a volume that waits for a provisioner which is gone", () => {
    const deleted = {
      deletionTimestamp: "2026-01-01T11:00:00Z",
      finalizers: ["external-provisioner.volume.kubernetes.io/finalizer"],
    };
    const gone = { csi: { driver: "gone.csi.example", volumeHandle: "h" } };
    const pv = object("v1", "PersistentVolume", "old", { metadata: deleted, spec: gone });
    expect(findingsOf("LS1505", [pv])[0]?.evidence).toContain("no node has gone.csi.example");
    expect(codesOf([ebs("old", {}, deleted)])).not.toContain("LS1505");
  });

  it("LS1606: the driver attaches to a node whose kubelet mounts in the tree", () => {
    const back = [csiNode("n1", [driver], ""), node("n1", {}, "v1.20.0"), attachment("a", {})];
    expect(findingsOf("LS1606", back)[0]?.object).toBe("VolumeAttachment a");
    expect(codesOf([attachment("a", {})])).not.toContain("LS1606");
  });

  it("LS1608: room before and after, volumes in pods counted", () => {
    const own = { name: "own", awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-00000000000000001" } };
    const limited = node("n1", {
      status: {
        nodeInfo: { kubeletVersion: "v1.22.3" },
        allocatable: { "attachable-volumes-aws-ebs": "39", cpu: "4" },
      },
    });
    const [finding] = findingsOf("LS1608", [limited, pod("web", [claimVolume, own])]);
    expect(finding?.evidence).toBe(
      "before, by the in-tree limit: 1 nodes, the least room is 37 of 39 on n1; " +
        `after, by the limit of ${driver}: 1 nodes, the least room is 23 of 25 on n1`,
    );
  });

  it("LS1210: the cluster's id with the very text that is hashed", () => {
    const rbd = object("v1", "PersistentVolume", "ceph", {
      spec: {
        rbd: { monitors: ["10.0.0.1:6789", "10.0.0.2:6789"], image: "i", pool: "rbd" },
        accessModes: ["ReadWriteOnce"],
      },
    });
    expect(findingsOf("LS1210", [rbd])[0]?.evidence).toMatch(
      /^its cluster id is [0-9a-f]{32}, the MD5 of "10\.0\.0\.1:6789,10\.0\.0\.2:6789"$/,
    );
  });
});
