/** Cycles of components that write little. */
import { resources } from "@longshore/kube";
import { startClusterDriverRegistrar, startSidecars } from "@longshore/sidecars";
import { type Conditions, fakeDriver, withConditions } from "@longshore/testing/sidecars";
import { type AccessCycle, accessNames } from "./access-world.ts";
import { addBoundClaim, aLease, countedAgain } from "./cycle-objects.ts";

const conditions: Conditions = new Map();
const isIll = (abnormal: boolean) => conditions.set("vol-9", { abnormal, message: "it creaks" });

/** A volume is not well, is well, and is not well. */
const healthCycle: AccessCycle = {
  name: "a volume is not well",
  component: "health-monitor",
  deploy: { healthMonitor: true },
  services: (cloud) => withConditions(fakeDriver(cloud), conditions, "list"),
  async run(world) {
    await addBoundClaim(world);
    isIll(true);
    const options = { listVolumesIntervalMs: 1000 };
    const monitor = world.start(
      startSidecars(world.env, { sidecars: { "health-monitor": options }, lease: aLease }),
    );
    const hasEvent = async (reason: string) =>
      (await world.admin.list(resources.events, { signal: world.signal })).items.some(
        (event) => event.reason === reason,
      );
    await world.eventually("it is reported", () => hasEvent("VolumeConditionAbnormal"));
    isIll(false);
    await world.eventually("so is that it is over", () => hasEvent("VolumeConditionNormal"));
    isIll(true);
    await world.eventually("and that it is not", () => countedAgain(world, "VolumeConditionAbnormal"));
    await world.pause(3000);
    await monitor.stop();
  },
};

/** The CSIDriver is made, found again, and taken away. */
const registrarCycle: AccessCycle = {
  name: "a driver comes and goes",
  component: "cluster-driver-registrar",
  deploy: {},
  async run(world) {
    const { admin, signal } = world;
    const ref = { name: accessNames.driver };
    const registrar = world.start(startClusterDriverRegistrar(world.env, { checkMs: 1000 }));
    await world.eventually("the object is made", () => admin.get(resources.csiDrivers, ref, { signal }));
    await world.pause(3000);
    await registrar.stop();
    await world.eventually(
      "it is taken away",
      async () => (await admin.get(resources.csiDrivers, ref, { signal })) === undefined,
    );
  },
};

/** All of them. */
export const smallCycles: readonly AccessCycle[] = [healthCycle, registrarCycle];
