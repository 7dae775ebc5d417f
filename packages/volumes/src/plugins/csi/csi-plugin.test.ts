/** What the controller asks of the CSI plugin, against the embedded API server. */
import { resources } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import { afterEach, expect, it } from "vitest";
import { specOfPersistentVolume, type VolumeSpec } from "../../framework/volume-spec.ts";
import { ControlPlane, startInstantAttacher } from "../../testing/control-plane.ts";
import { csiPlugin } from "./csi-plugin.ts";

const spec: VolumeSpec = specOfPersistentVolume(
  { metadata: { name: "pv" }, spec: { csi: { driver: "d.example", volumeHandle: "h" } } },
  false,
);
const name = attachmentName("h", "d.example", "n");

let plane: ControlPlane;
afterEach(() => plane.stop());

async function aPlugin() {
  plane = new ControlPlane();
  const plugin = csiPlugin();
  await plugin.init({
    ...plane.env,
    kube: plane.kube,
    csiDriver: (driver, signal) => plane.kube.get(resources.csiDrivers, { name: driver }, { signal }),
  });
  const isAttached = async () => {
    const asked = plugin.newAttacher().volumesAreAttached([spec], "n", plane.signal);
    return (await plane.clock.run(asked)).get(spec);
  };
  return { plugin, isAttached };
}

const aDriverWithoutAttach = () =>
  plane.create(resources.csiDrivers, { metadata: { name: "d.example" }, spec: { attachRequired: false } });

it("attaches nothing of a driver that wants no attach", async () => {
  const { plugin } = await aPlugin();
  expect(await plane.clock.run(plugin.canAttach(spec))).toBe(true);
  await aDriverWithoutAttach();
  expect(await plane.clock.run(plugin.canAttach(spec))).toBe(false);
});

it("asks the API server which volumes are attached", async () => {
  const { isAttached } = await aPlugin();
  expect(await isAttached()).toBe(false);
  await plane.create(resources.volumeAttachments, {
    metadata: { name },
    spec: { attacher: "d.example", nodeName: "n", source: { persistentVolumeName: "pv" } },
  });
  expect(await isAttached()).toBe(false);
  plane.running(startInstantAttacher(plane));
  await plane.pass(1_000);
  expect(await isAttached()).toBe(true);
});

it("counts a volume of a driver that wants no attach as attached", async () => {
  const { isAttached } = await aPlugin();
  await aDriverWithoutAttach();
  expect(await isAttached()).toBe(true);
});
