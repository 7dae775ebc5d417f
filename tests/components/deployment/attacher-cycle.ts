/** The attacher: a volume is attached at the second try, detached and deleted; its lease is made and renewed. */
import { resources } from "@longshore/kube";
import { startSidecars } from "@longshore/sidecars";
import { type AccessCycle, type AccessWorld, accessNames } from "./access-world.ts";
import { addNode, aLease, aVolume, countedAgain } from "./cycle-objects.ts";

/** The access cycle of the attacher. */
export const attacherCycle: AccessCycle = {
  name: "attach, detach, delete",
  component: "attacher",
  deploy: { attach: true },
  async run(world) {
    const { admin, cloud, signal, env } = world;
    await addNode(world);
    // Of an old kubelet, which writes no CSINode.
    const annotations = { "csi.volume.kubernetes.io/nodeid": `{"${accessNames.driver}":"i-b"}` };
    await admin.create(resources.nodes, { metadata: { name: "node-b", annotations } }, { signal });
    await admin.create(resources.persistentVolumes, aVolume("pv-1"), { signal });
    cloud.disks.set("vol-9", { name: "x", bytes: 1n, zone: "us-east-1a" });
    cloud.next("ControllerPublishVolume", { code: "INTERNAL" }, { code: "INTERNAL" });
    const attacher = world.start(startSidecars(env, { sidecars: { attacher: {} }, lease: aLease }));
    await attachAndDetach(world, "node-a");
    await world.eventually("the failure is counted", () => countedAgain(world, "FailedAttachVolume"));
    await attachAndDetach(world, "node-b");
    await admin.delete(resources.persistentVolumes, { name: "pv-1" }, { signal });
    await world.eventually("the attacher lets the volume go", async () => {
      const pv = await admin.get(resources.persistentVolumes, { name: "pv-1" }, { signal });
      return !(pv?.metadata.finalizers ?? []).some((finalizer) => finalizer.startsWith("external-attacher/"));
    });
    // Longer than a renewal takes.
    await world.pause(3000);
    await attacher.stop();
  },
};

async function attachAndDetach(world: AccessWorld, nodeName: string): Promise<void> {
  const { admin, signal } = world;
  const spec = { attacher: accessNames.driver, nodeName, source: { persistentVolumeName: "pv-1" } };
  const ref = { name: `csi-${nodeName}` };
  await admin.create(resources.volumeAttachments, { metadata: ref, spec }, { signal });
  const attachment = () => admin.get(resources.volumeAttachments, ref, { signal });
  await world.eventually("attached", async () => (await attachment())?.status?.attached === true);
  await admin.delete(resources.volumeAttachments, ref, { signal });
  await world.eventually("detached", async () => (await attachment()) === undefined);
}
