/** What the volume manager counts and measures. Source: docs/behaviour/node-agent.md 10. */
import { recordingMeter } from "@longshore/runtime";
import { expect, it } from "vitest";
import { driverName, NodeWorld } from "../testing/node-world.ts";
import { failOnce, testDriver } from "../testing/test-driver.ts";

/** A node on which a pod has mounted a volume of the driver, or one of EBS in-tree. */
async function mounted(source: "in-tree" | "csi") {
  const meter = recordingMeter();
  const world = await NodeWorld.create({ meter });
  if (source === "csi") await world.serveDriver(testDriver(world.host));
  const agent = world.start();
  const csi = { csi: { driver: driverName, volumeHandle: "vol-1", fsType: "ext4" } };
  await world.volume("vol-1", source === "csi" ? csi : undefined);
  await (source === "csi" ? world.attachCsi("vol-1") : world.attachInTree("vol-1"));
  const pod = await world.pod("p", ["vol-1"]);
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  const plugin = source === "csi" ? `kubernetes.io/csi:${driverName}` : "kubernetes.io/aws-ebs";
  const total = (state: string) =>
    meter.value("volume_manager_total_volumes", { plugin_name: plugin, state: `${state}_state_of_world` });
  const durations = (operation: string, status = "success") =>
    meter.observations("storage_operation_duration_seconds", {
      volume_plugin: plugin,
      operation_name: operation,
      status,
      migrated: "false",
    }).length;
  const calls = (rpc: string) =>
    meter.observations("csi_operations_seconds", {
      driver_name: driverName,
      method_name: `/csi.v1.Node/${rpc}`,
      grpc_status_code: "OK",
      migrated: "false",
    }).length;
  return { world, agent, pod, total, durations, calls };
}

it.each(["in-tree", "csi"] as const)(
  "volumes are counted, and what is done to them is measured: %s (node-agent.md 10)",
  async (source) => {
    const { world, agent, total, durations } = await mounted(source);
    expect([total("desired"), total("actual")]).toEqual([1, 1]);
    expect([durations("verify_controller_attached_volume"), durations("volume_mount")]).toEqual([1, 1]);
    expect([durations("volume_unmount"), durations("unmount_device")]).toEqual([0, 0]);
    await world.deletePod("p");
    await world.until("all is unmounted", () => durations("unmount_device") === 1);
    await world.until("and forgotten", () => total("actual") === 0);
    expect([durations("volume_unmount"), total("desired")]).toEqual([1, 0]);
    await agent.stop();
  },
);

it("an agent that has stopped leaves no counts behind (node-agent.md 10)", async () => {
  const { agent, total } = await mounted("in-tree");
  await agent.stop();
  expect([total("desired"), total("actual")]).toEqual([0, 0]);
});

it("calls of drivers are measured (node-agent.md 10)", async () => {
  const { world, agent, calls } = await mounted("csi");
  expect([calls("NodeStageVolume"), calls("NodePublishVolume"), calls("NodeUnpublishVolume")]).toEqual([
    1, 1, 0,
  ]);
  await world.deletePod("p");
  await world.until("unstaged", () => calls("NodeUnstageVolume") === 1);
  expect(calls("NodeUnpublishVolume")).toBe(1);
  await agent.stop();
});

it("calls for a migrated volume say so, and a failed one its code (node-agent.md 10)", async () => {
  const meter = recordingMeter();
  const world = await NodeWorld.create({ meter });
  await world.serveDriver(testDriver(world.host));
  failOnce(world.driver, "NodePublishVolume", "INTERNAL");
  const agent = world.start({ CSIMigration: true, CSIMigrationAWS: true });
  await world.volume("vol-1");
  await world.attachCsi("vol-1");
  const pod = await world.pod("p", ["vol-1"]);
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  const calls = (rpc: string, code: string) =>
    meter.observations("csi_operations_seconds", {
      driver_name: driverName,
      method_name: `/csi.v1.Node/${rpc}`,
      grpc_status_code: code,
      migrated: "true",
    }).length;
  expect(calls("NodeStageVolume", "OK")).toBe(1);
  expect([calls("NodePublishVolume", "INTERNAL"), calls("NodePublishVolume", "OK")]).toEqual([1, 1]);
  await agent.stop();
});
