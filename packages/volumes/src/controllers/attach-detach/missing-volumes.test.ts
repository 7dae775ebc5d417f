/**
 * VolumeAttachments whose PersistentVolume is missing at a start: they are known by their own names alone, until the
 * volume is there again. Source: docs/contract.md C2 and C4; docs/behaviour/controllers.md A6.
 */
import { type PersistentVolume, resources, type Stored } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import { afterEach, beforeEach, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import {
  aBoundEbsVolume,
  aCsiNode,
  aNode,
  aPod,
  ControlPlane,
  startInstantAttacher,
} from "../../testing/control-plane.ts";
import { startAttachDetachController } from "./attach-detach-controller.ts";

const driver = "ebs.csi.aws.com";
const csiName = `kubernetes.io/csi/${driver}^vol-a`;
const name = attachmentName("vol-a", driver, "n1");

let plane: ControlPlane;
let volume: Stored<PersistentVolume>;
afterEach(() => plane.stop());

/** CSI has the disk on n1, which uses it; the node's status has lost the entry, and the volume is missing. */
beforeEach(async () => {
  plane = new ControlPlane();
  await plane.create(resources.nodes, aNode("n1"));
  await plane.create(resources.csiNodes, aCsiNode("n1", [driver], "kubernetes.io/aws-ebs"));
  volume = (await aBoundEbsVolume(plane, "a", "vol-a")).pv;
  await plane.create(resources.volumeAttachments, {
    metadata: { name },
    spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv-a" } },
    status: { attached: true },
  });
  await plane.setVolumesInUse("n1", [csiName]);
  await plane.merge(resources.persistentVolumes, { name: "pv-a" }, { metadata: { finalizers: null } });
  await plane.delete(resources.persistentVolumes, "pv-a");
});

function start(): void {
  plane.running(startInstantAttacher(plane));
  const gates = featureGates(volumeGates, { CSIMigrationAWS: true });
  plane.running(
    startAttachDetachController({ ...plane.env, kube: plane.kube, plugins: [csiPlugin()] }, { gates }),
  );
}

const aPodOnN1 = () =>
  plane.create(resources.pods, aPod("p", "n1", { persistentVolumeClaim: { claimName: "a" } }));

async function restoreVolume(): Promise<void> {
  const { resourceVersion: _version, uid: _uid, ...metadata } = volume.metadata;
  await plane.create(resources.persistentVolumes, { ...volume, metadata });
}

it("a volume that returns under its pod keeps its VolumeAttachment, and is detached once when the pod goes (controllers.md A6)", async () => {
  const before = await plane.get(resources.volumeAttachments, name);
  await aPodOnN1();
  start();
  await plane.pass(10_000);
  // The report of the node is late: that it uses the disk must not be all that protects it.
  await plane.setVolumesInUse("n1", []);
  await plane.pass(10_000);
  await restoreVolume();
  await plane.pass(130_000);
  const after = await plane.get(resources.volumeAttachments, name);
  expect(after?.metadata.uid).toBe(before?.metadata.uid);
  expect(await plane.volumesAttached("n1")).toEqual([csiName]);

  await plane.setVolumesInUse("n1", [csiName]);
  await plane.delete(resources.pods, "p", "default");
  await plane.pass(130_000);
  expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  await plane.setVolumesInUse("n1", []);
  await plane.pass(5_000);
  expect(await plane.list(resources.volumeAttachments)).toEqual([]);
  expect(await plane.volumesAttached("n1")).toEqual([]);
});

it("a volume that does not return is detached once its node uses it no more (controllers.md A6)", async () => {
  start();
  await plane.pass(130_000);
  expect(await plane.get(resources.volumeAttachments, name)).toBeDefined();
  await plane.setVolumesInUse("n1", []);
  await plane.pass(130_000);
  expect(await plane.list(resources.volumeAttachments)).toEqual([]);
});

it("a volume that returns while its VolumeAttachment is being deleted waits for the end of that (controllers.md A6)", async () => {
  const finalizers = ["external-attacher/x"];
  await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers } });
  await plane.setVolumesInUse("n1", []);
  start();
  await plane.pass(5_000);
  expect((await plane.get(resources.volumeAttachments, name))?.metadata.deletionTimestamp).toBeDefined();
  await restoreVolume();
  await aPodOnN1();
  await plane.pass(20_000);
  expect(await plane.volumesAttached("n1")).toEqual([]);
  await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers: null } });
  await plane.pass(1_000);
  expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  expect(await plane.eventsOn("Pod", "p")).toEqual([expect.stringContaining("SuccessfulAttachVolume")]);
});

it("a volume that returns for a pod on another node waits while the first node uses it (controllers.md A6; contract.md C2)", async () => {
  await plane.create(resources.nodes, aNode("n2"));
  await plane.create(resources.csiNodes, aCsiNode("n2", [driver], "kubernetes.io/aws-ebs"));
  start();
  await plane.pass(1_000);
  await restoreVolume();
  await plane.create(resources.pods, aPod("q", "n2", { persistentVolumeClaim: { claimName: "a" } }));
  await plane.pass(130_000);
  const nodesWithAttachment = async () =>
    (await plane.list(resources.volumeAttachments)).map(({ spec }) => spec.nodeName);
  expect(await nodesWithAttachment()).toEqual(["n1"]);
  expect(await plane.eventsOn("Pod", "q")).toEqual([expect.stringContaining("Multi-Attach error")]);
  await plane.setVolumesInUse("n1", []);
  await plane.pass(20_000);
  expect(await nodesWithAttachment()).toEqual(["n2"]);
  expect(await plane.volumesAttached("n2")).toEqual([csiName]);
});
