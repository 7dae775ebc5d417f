/** Cycles of the resizer. */
import { ControllerServiceCapability_RPC_Type as ControllerRpc, type CsiServices } from "@longshore/csi";
import { resources } from "@longshore/kube";
import { startSidecars } from "@longshore/sidecars";
import { type FakeCloud, fakeDriver } from "@longshore/testing/sidecars";
import { type AccessCycle, accessNames } from "./access-world.ts";
import { addBoundClaim, aLease, change, countedAgain } from "./cycle-objects.ts";

const ref = { namespace: "default", name: "data" };

/** A volume that cannot grow in use grows once no pod uses it. */
const expandCycle: AccessCycle = {
  name: "expand",
  component: "resizer",
  deploy: { resize: true },
  services: (cloud) => resizing(cloud, [ControllerRpc.EXPAND_VOLUME]),
  async run(world) {
    const { admin, cloud, signal } = world;
    await addBoundClaim(world);
    cloud.next(
      "ControllerExpandVolume",
      { code: "INTERNAL" },
      { code: "INTERNAL" },
      { code: "FAILED_PRECONDITION" },
    );
    const resizer = world.start(startSidecars(world.env, { sidecars: { resizer: {} }, lease: aLease }));
    const body = { spec: { resources: { requests: { storage: "2Gi" } } } };
    await change(world, resources.persistentVolumeClaims, ref, body);
    await world.eventually("the failure is counted", () => countedAgain(world, "VolumeResizeFailed"));
    await world.eventually("expanded", async () => {
      const claim = await admin.get(resources.persistentVolumeClaims, ref, { signal });
      return claim?.status?.capacity?.storage === "2Gi";
    });
    await world.pause(3000);
    await resizer.stop();
  },
};

/** A volume gets the attributes of a class. */
const modifyCycle: AccessCycle = {
  name: "modify",
  component: "resizer",
  deploy: { modify: true },
  sinceMinor: 34,
  services: (cloud) => resizing(cloud, [ControllerRpc.MODIFY_VOLUME]),
  async run(world) {
    const { admin, signal } = world;
    await addBoundClaim(world);
    await admin.create(
      resources.volumeAttributesClasses,
      { metadata: { name: "gold" }, driverName: accessNames.driver, parameters: { iops: "10" } },
      { signal },
    );
    const resizer = world.start(startSidecars(world.env, { sidecars: { resizer: {} }, lease: aLease }));
    await change(world, resources.persistentVolumeClaims, ref, {
      spec: { volumeAttributesClassName: "gold" },
    });
    await world.eventually("modified", async () => {
      const claim = await admin.get(resources.persistentVolumeClaims, ref, { signal });
      return claim?.status?.currentVolumeAttributesClassName === "gold";
    });
    await resizer.stop();
  },
};

/** Both. */
export const resizerCycles: readonly AccessCycle[] = [expandCycle, modifyCycle];

function resizing(cloud: FakeCloud, rpcs: readonly ControllerRpc[]): CsiServices {
  const services = fakeDriver(cloud);
  return {
    ...services,
    controller: {
      ...services.controller,
      controllerGetCapabilities: async () => ({
        capabilities: rpcs.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
      }),
      controllerExpandVolume: ({ volumeId, capacityRange }) =>
        cloud.run("ControllerExpandVolume", volumeId, () => ({
          capacityBytes: capacityRange?.requiredBytes ?? 0n,
          nodeExpansionRequired: false,
        })),
      controllerModifyVolume: ({ volumeId }) => cloud.run("ControllerModifyVolume", volumeId, () => ({})),
    },
    node: { nodeGetCapabilities: async () => ({ capabilities: [] }) },
  };
}
