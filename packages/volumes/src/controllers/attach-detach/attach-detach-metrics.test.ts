/** What the attach/detach controller counts and measures. Source: docs/behaviour/controllers.md A11. */
import { resources } from "@longshore/kube";
import { featureGates, recordingMeter } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import { afterEach, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import { aBoundEbsVolume, aCsiNode, aNode, aPod, ControlPlane } from "../../testing/control-plane.ts";
import { startAttachDetachController } from "./attach-detach-controller.ts";

const driver = "ebs.csi.aws.com";
const plugin = `kubernetes.io/csi:${driver}`;

let plane: ControlPlane;
afterEach(() => plane.stop());

/** A node that has changed over, a disk written for in-tree or for the driver, and the controller. */
async function world(source: "in-tree" | "csi") {
  plane = new ControlPlane();
  const meter = recordingMeter();
  const csi = { awsElasticBlockStore: undefined, csi: { driver, volumeHandle: "vol-a" } };
  await plane.create(resources.nodes, aNode("n1"));
  await plane.create(resources.csiNodes, aCsiNode("n1", [driver], "kubernetes.io/aws-ebs"));
  await aBoundEbsVolume(plane, "a", "vol-a", source === "csi" ? { pv: csi } : {});
  const controller = startAttachDetachController(
    { ...plane.env, kube: plane.kube, meter, plugins: [csiPlugin()] },
    { gates: featureGates(volumeGates, { CSIMigrationAWS: true }) },
  );
  plane.running(controller);
  await plane.pass(1_000);
  const total = (state: string) =>
    meter.value("attachdetach_controller_total_volumes", {
      plugin_name: plugin,
      state: `${state}_state_of_world`,
    });
  const onNode = () =>
    meter.value("storage_count_attachable_volumes_in_use", { node: "n1", volume_plugin: plugin });
  const durations = (operation: string, status: string) =>
    meter.observations("storage_operation_duration_seconds", {
      volume_plugin: plugin,
      operation_name: operation,
      status,
      migrated: String(source === "in-tree"),
    });
  return { controller, total, onNode, durations };
}

const wantDisk = () =>
  plane.create(resources.pods, aPod("p", "n1", { persistentVolumeClaim: { claimName: "a" } }));
const saysAttached = () =>
  plane.merge(
    resources.volumeAttachments,
    { name: attachmentName("vol-a", driver, "n1") },
    { status: { attached: true } },
    "status",
  );

it.each(["in-tree", "csi"] as const)(
  "volumes are counted, attach and detach measured, migrated or not: %s (controllers.md A11)",
  async (source) => {
    const { total, onNode, durations } = await world(source);
    expect([total("desired"), total("actual")]).toEqual([0, 0]);
    await wantDisk();
    await plane.pass(7_000);
    expect([total("desired"), total("actual"), durations("volume_attach", "success")]).toEqual([1, 0, []]);
    await saysAttached();
    await plane.pass(1_000);
    expect(durations("volume_attach", "success")).toEqual([7]);
    expect([total("desired"), total("actual"), onNode()]).toEqual([1, 1, 1]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(1_000);
    expect(durations("volume_detach", "success")).toHaveLength(1);
    expect([total("desired"), total("actual"), onNode()]).toEqual([0, 0, 0]);
  },
);

it("an attach that its driver does not confirm in time is a failure (controllers.md A11)", async () => {
  const { durations } = await world("in-tree");
  await wantDisk();
  await plane.pass(121_000);
  expect(durations("volume_attach", "fail-unknown")).toEqual([120]);
  expect(durations("volume_attach", "success")).toEqual([]);
});

it("a controller that has stopped leaves no counts behind (controllers.md A11)", async () => {
  const { controller, total, onNode } = await world("in-tree");
  await wantDisk();
  await plane.pass(1_000);
  await saysAttached();
  await plane.pass(1_000);
  expect(total("actual")).toBe(1);
  await plane.clock.run(controller.stop());
  expect([total("desired"), total("actual"), onNode()]).toEqual([0, 0, 0]);
});
