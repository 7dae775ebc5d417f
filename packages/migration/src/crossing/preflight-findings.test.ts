import type { CSINode, Node, PersistentVolume, PersistentVolumeClaim, Pod, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { CrossingObservation } from "./crossing-observation.ts";
import { crossingSubject, gateValuesFor, UnknownPluginError } from "./crossing-subject.ts";
import { csiNodeLacks, volumesLeft } from "./node-state.ts";
import { preflightFindings } from "./preflight-findings.ts";

const subject = crossingSubject("aws-ebs");
const driver = "ebs.csi.aws.com";
const readyNode = { status: { conditions: [{ type: "Ready", status: "True" }] } };
const node = { metadata: { name: "n1" }, ...readyNode } as Stored<Node>;
const csiNode = (drivers: string[], annotation?: string) =>
  ({
    metadata: {
      name: "n1",
      ...(annotation === undefined
        ? {}
        : { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": annotation } }),
    },
    spec: { drivers: drivers.map((name) => ({ name, nodeID: "i" })) },
  }) as unknown as Stored<CSINode>;
const pv = (volumeID: string) =>
  ({
    metadata: { name: "pv1" },
    spec: { awsElasticBlockStore: { volumeID }, accessModes: ["ReadWriteOnce"] },
  }) as unknown as Stored<PersistentVolume>;
const claim = {
  metadata: { name: "c1", namespace: "default" },
  spec: { volumeName: "pv1" },
} as Stored<PersistentVolumeClaim>;
const pod = (owner?: string, annotations: Record<string, string> = {}) =>
  ({
    metadata: {
      name: "p",
      namespace: "default",
      annotations,
      ...(owner === undefined ? {} : { ownerReferences: [{ kind: owner, controller: true }] }),
    },
    spec: { nodeName: "n1", volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c1" } }] },
  }) as unknown as Stored<Pod>;
const seen = (over: Partial<CrossingObservation> = {}): CrossingObservation => ({
  now: new Date("2026-01-01T12:00:00Z"),
  budgets: [],
  attachments: [],
  events: [],
  leases: [],
  nodes: [node],
  csiNodes: [csiNode([driver])],
  pods: [pod("StatefulSet")],
  volumes: [pv("aws://us-east-1a/vol-1")],
  claims: [claim],
  ...over,
});

describe("what blocks a crossing", () => {
  const objects = (
    over: Partial<CrossingObservation>,
    direction: "migrate" | "rollback" = "migrate",
    force = false,
  ) =>
    preflightFindings(subject, direction, seen(over), { force })
      .filter((f) => f.severity === "blocker")
      .map((f) => f.object);

  it("finds nothing in a cluster that is prepared", () => {
    expect(objects({})).toEqual([]);
  });
  it("a node without the driver, with no CSINode, or of another driver only", () => {
    expect(objects({ csiNodes: [] })).toEqual(["Node n1"]);
    expect(objects({ csiNodes: [csiNode(["other"])] })).toEqual(["Node n1"]);
    expect(objects({ csiNodes: [] }, "rollback")).toEqual([]);
  });
  it("a volume that cannot be translated", () => {
    expect(objects({ volumes: [pv("aws://us-east-1a/not-a-volume")] })).toEqual(["PersistentVolume pv1"]);
  });
  it("pods that a drain leaves, if they use a volume of the plugin", () => {
    expect(objects({ pods: [pod("DaemonSet")] })).toEqual(["Pod default/p"]);
    expect(objects({ pods: [pod(undefined, { "kubernetes.io/config.mirror": "x" })] })).toEqual([
      "Pod default/p",
    ]);
    expect(objects({ pods: [pod("DaemonSet")], claims: [] })).toEqual([]);
  });
  it("pods that a drain leaves, if a generic ephemeral volume of theirs is the plugin's", () => {
    const daemon = pod("DaemonSet");
    const ephemeral = {
      ...daemon,
      spec: { ...daemon.spec, volumes: [{ name: "v", ephemeral: { volumeClaimTemplate: { spec: {} } } }] },
    } as unknown as Stored<Pod>;
    const claims = [{ ...claim, metadata: { ...claim.metadata, name: "p-v" } }];
    expect(objects({ pods: [ephemeral], claims })).toEqual(["Pod default/p"]);
    expect(objects({ pods: [ephemeral] })).toEqual([]);
  });
  it("pods that no controller would recreate, unless forced", () => {
    expect(objects({ pods: [pod()] })).toEqual(["Pod default/p"]);
    expect(objects({ pods: [pod()] }, "migrate", true)).toEqual([]);
    // A drain takes every pod, also one that has no such volume.
    expect(objects({ pods: [pod()], claims: [] })).toEqual(["Pod default/p"]);
    const ended = { ...pod(), status: { phase: "Succeeded" } } as Stored<Pod>;
    expect(objects({ pods: [ended] })).toEqual([]);
  });
  it("pods that a drain leaves, if they use a volume that was the driver's from the start", () => {
    const csi = { metadata: { name: "pv1" }, spec: { csi: { driver, volumeHandle: "vol-1" } } };
    const volumes = [csi as unknown as Stored<PersistentVolume>];
    expect(objects({ pods: [pod("DaemonSet")], volumes })).toEqual(["Pod default/p"]);
    expect(objects({ pods: [pod("StatefulSet")], volumes })).toEqual([]);
  });
});

describe("what a crossing reads off a node", () => {
  it("volumes left in either form, and VolumeAttachments to the driver", () => {
    const busy = {
      metadata: { name: "n1" },
      status: {
        volumesInUse: ["kubernetes.io/aws-ebs/aws://a/vol-1", "kubernetes.io/gce-pd/x"],
        volumesAttached: [{ name: `kubernetes.io/csi/${driver}^vol-2`, devicePath: "" }],
      },
    } as unknown as Node;
    const attachments = ["n1", "n2"].map((nodeName) => ({
      metadata: { name: `csi-${nodeName}` },
      spec: { attacher: driver, nodeName, source: {} },
    }));
    expect(volumesLeft(subject, busy, attachments)).toEqual([
      "kubernetes.io/aws-ebs/aws://a/vol-1 in use",
      `kubernetes.io/csi/${driver}^vol-2 attached`,
      "VolumeAttachment csi-n1",
    ]);
    expect(volumesLeft(subject, node, [])).toEqual([]);
  });

  it("what the CSINode lacks", () => {
    const plugin = "kubernetes.io/aws-ebs";
    expect(csiNodeLacks(subject, "migrate", undefined)).toBeDefined();
    expect(csiNodeLacks(subject, "migrate", csiNode([driver]))).toBeDefined();
    expect(csiNodeLacks(subject, "migrate", csiNode([], plugin))).toBeDefined();
    expect(csiNodeLacks(subject, "migrate", csiNode([driver], `a,${plugin}`))).toBeUndefined();
    expect(csiNodeLacks(subject, "rollback", csiNode([driver], plugin))).toBeDefined();
    expect(csiNodeLacks(subject, "rollback", csiNode([driver], ""))).toBeUndefined();
    expect(csiNodeLacks(subject, "rollback", undefined)).toBeUndefined();
  });
});

describe("crossingSubject", () => {
  it("is found by each of its names", () => {
    for (const name of ["aws-ebs", "kubernetes.io/aws-ebs", driver]) {
      expect(crossingSubject(name).gate).toBe("CSIMigrationAWS");
    }
    expect(() => crossingSubject("floppy")).toThrow(UnknownPluginError);
  });
  it("going back leaves the master switch alone", () => {
    expect(gateValuesFor(subject, "migrate")).toEqual({ CSIMigration: true, CSIMigrationAWS: true });
    expect(gateValuesFor(subject, "rollback")).toEqual({ CSIMigrationAWS: false });
  });
});
