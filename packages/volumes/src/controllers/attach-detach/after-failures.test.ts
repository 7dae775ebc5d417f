/**
 * What is left after a failure that upstream has had: a driver that is missing when the controller starts, a detach whose
 * answer is an error although it was done. Source: docs/gallery.md.
 */
import { resources } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { afterEach, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { CloudError } from "../../framework/ports.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import {
  aBoundEbsVolume,
  aCsiNode,
  aNode,
  aPod,
  ControlPlane,
  startInstantAttacher,
} from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { startAttachDetachController } from "./attach-detach-controller.ts";

const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const ofClaim = { persistentVolumeClaim: { claimName: "a" } };

let plane: ControlPlane | undefined;
afterEach(() => plane?.stop());

async function world(migrated?: string) {
  plane = new ControlPlane();
  const made = plane;
  const cloud = new FakeCloud(["n1"]);
  await made.create(resources.nodes, aNode("n1"));
  await made.create(resources.csiNodes, aCsiNode("n1", [driver], migrated));
  await aBoundEbsVolume(made, "a", "vol-a");
  const plugins = [csiPlugin(), awsEbsPlugin({ cloud })];
  const gates = featureGates(volumeGates, { CSIMigrationAWS: true });
  const start = () =>
    made.running(startAttachDetachController({ ...made.env, kube: made.kube, plugins }, { gates }));
  return { plane: made, cloud, start };
}

it("a volume stays attached when the controller starts and the driver is not on the node (controllers.md A5; contract.md C2)", async () => {
  const { plane, start } = await world(ebs);
  plane.running(startInstantAttacher(plane));
  await plane.create(resources.pods, aPod("p", "n1", ofClaim));
  const first = start();
  await plane.pass(2_000);
  await plane.clock.run(first.stop());
  await plane.delete(resources.csiNodes, "n1");
  await plane.create(resources.csiNodes, aCsiNode("n1", [], ebs));
  start();
  // The node has mounted it and not said so yet: nothing but the pod holds it.
  await plane.pass(600_000);
  expect(await plane.list(resources.volumeAttachments)).toHaveLength(1);
  expect(await plane.volumesAttached("n1")).toEqual([`kubernetes.io/csi/${driver}^vol-a`]);
});

it("a disk that is detached although that failed is attached again for the next pod of the node (controllers.md A7)", async () => {
  const { plane, cloud, start } = await world();
  start();
  await plane.create(resources.pods, aPod("p", "n1", ofClaim));
  await plane.pass(2_000);
  cloud.before = (call) => {
    if (!call.startsWith("detach")) return;
    const disk = cloud.disks.get("vol-a");
    if (disk !== undefined) disk.attachment = undefined;
    throw new CloudError("Unavailable", "no answer");
  };
  await plane.delete(resources.pods, "p", "default");
  await plane.pass(2_000);
  expect(cloud.nodeOf("vol-a")).toBeUndefined();
  await plane.create(resources.pods, aPod("q", "n1", ofClaim));
  // Before the provider is asked what is attached, which would find it out later.
  await plane.pass(20_000);
  expect(cloud.nodeOf("vol-a")).toBe("n1");
  expect(await plane.volumesAttached("n1")).toEqual([`${ebs}/vol-a`]);
});

it("a disk that may be attached is in no node's status, also when its detach fails (controllers.md A6, A7)", async () => {
  const { plane, cloud, start } = await world();
  start();
  cloud.before = (call) => {
    if (/^(at|de)tach/.test(call)) throw new CloudError("Unavailable", "no answer");
  };
  await plane.create(resources.pods, aPod("p", "n1", ofClaim));
  await plane.pass(2_000);
  await plane.delete(resources.pods, "p", "default");
  await plane.pass(600_000);
  expect(cloud.calls.filter((call) => call.startsWith("detach")).length).toBeGreaterThan(1);
  expect(await plane.volumesAttached("n1")).toEqual([]);
});
