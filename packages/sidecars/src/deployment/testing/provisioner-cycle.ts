/** The provisioner: a claim gets its volume at the third try, and the volume goes with the claim. */
import { type PersistentVolumeClaim, resources } from "@longshore/kube";
import { startSidecars } from "../../together/sidecars.ts";
import { type AccessCycle, type AccessWorld, accessNames } from "./access-world.ts";
import { addNode, aLease, change, secretParameters, toldAgain } from "./cycle-objects.ts";

const { driver } = accessNames;
const ref = { namespace: "default", name: "data" };

/** See the file's header. */
export const provisionerCycle: AccessCycle = {
  name: "provision, delete",
  component: "provisioner",
  deploy: { topology: true, attach: true },
  async run(world) {
    const { admin, cloud, signal, env } = world;
    await addNode(world);
    await admin.create(
      resources.storageClasses,
      { metadata: { name: "fast" }, provisioner: driver, parameters: secretParameters("provisioner") },
      { signal },
    );
    cloud.next("CreateVolume", { code: "INTERNAL" }, { code: "INTERNAL" });
    const provisioner = world.start(startSidecars(env, { sidecars: { provisioner: {} }, lease: aLease }));
    await admin.create(resources.persistentVolumeClaims, aClaim(), { signal });
    const pv = await world.eventually("the volume is made", () => volumeOf(world));
    await world.eventually("the failure is counted", () => toldAgain(world, "ProvisioningFailed"));
    await world.eventually("the intent is taken off the claim", async () => {
      const claim = await admin.get(resources.persistentVolumeClaims, ref, { signal });
      return !(claim?.metadata.finalizers ?? []).includes("longshore.dev/provisioning");
    });
    // As the persistent-volume controller would.
    const { name } = pv.metadata;
    await change(world, resources.persistentVolumes, { name }, { status: { phase: "Bound" } }, "status");
    await world.eventually("the volume is protected", async () =>
      (await volumeOf(world))?.metadata.finalizers?.some((finalizer) =>
        finalizer.startsWith("external-provisioner"),
      ),
    );
    await admin.delete(resources.persistentVolumeClaims, ref, { signal });
    await change(world, resources.persistentVolumeClaims, ref, { metadata: { finalizers: null } }).catch(
      () => {},
    );
    await change(world, resources.persistentVolumes, { name }, { status: { phase: "Released" } }, "status");
    await change(
      world,
      resources.persistentVolumes,
      { name },
      {
        metadata: { finalizers: ["external-provisioner.volume.kubernetes.io/finalizer"] },
      },
    );
    await world.eventually("the volume is gone", async () => (await volumeOf(world)) === undefined);
    await world.eventually("the disk is gone", async () => cloud.disks.size === 0);
    await world.pause(3000);
    await provisioner.stop();
  },
};

async function volumeOf({ admin, signal }: AccessWorld) {
  const { items } = await admin.list(resources.persistentVolumes, { signal });
  return items.find(({ spec }) => spec?.claimRef?.name === ref.name);
}

const aClaim = (): PersistentVolumeClaim => ({
  metadata: { ...ref, annotations: { "volume.beta.kubernetes.io/storage-provisioner": driver } },
  spec: {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    storageClassName: "fast",
  },
});
