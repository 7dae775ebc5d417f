/**
 * A PersistentVolume whose creation got no answer was stored, bound, set to Retain and given up by the time that the
 * provisioner learns of the lost connection: who gave it up has its disk (docs/contract.md C3).
 */
import { resources } from "@longshore/kube";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { ref, Stage } from "../testing/leak-stage.ts";
import { losingCreation } from "../testing/lost-creation.ts";
import { aClaim, addNode, aStorageClass, sidecarWorld } from "../testing/world.ts";
import { type ProvisionerOptions, startProvisioner } from "./provisioner.ts";

const { persistentVolumes, persistentVolumeClaims } = resources;

/** What the persistent-volume controller and the administrator do. */
async function giveUp({ world: { kube, signal } }: Stage, name: string): Promise<void> {
  const merge = (body: object) => ({ type: "merge", body }) as const;
  await kube.patch(persistentVolumeClaims, ref, merge({ spec: { volumeName: name } }), { signal });
  const retained = merge({ spec: { persistentVolumeReclaimPolicy: "Retain" } });
  await kube.patch(persistentVolumes, { name }, retained, { signal });
  await kube.delete(persistentVolumeClaims, ref, { signal });
  await kube.delete(persistentVolumes, { name }, { signal });
  await kube.patch(persistentVolumes, { name }, merge({ metadata: { finalizers: null } }), { signal });
}

interface Case {
  readonly name: string;
  readonly options?: ProvisionerOptions;
  readonly isForced?: true;
  readonly isLagging?: true;
  readonly restarts?: true;
}

const cases: readonly Case[] = [
  { name: "its claim being deleted" },
  { name: "its claim being deleted, after a restart", restarts: true },
  { name: "its claim being deleted, which the cache does not show yet", isLagging: true },
  {
    name: "with a provisioner on each node",
    options: { nodeDeployment: { nodeName: "node-a" }, strictTopology: true },
  },
  { name: "the intent taken off its claim by force", isForced: true },
  {
    name: "its claim without an intent (compat: reference)",
    options: { compat: "reference" },
    isForced: true,
  },
];

describe("a volume that was kept and given up before the next attempt does not come back,", () => {
  it.each(cases)("$name", async ({ options = {}, isForced, isLagging, restarts }) => {
    const driver = new FakeProvisioning();
    driver.room.set("us-east-1a", 10n << 30n);
    const world = await sidecarWorld({}, { extend: driver.extend });
    const { kube, signal, clock, cloud } = world;
    await addNode(world, "node-a", "us-east-1a");
    await kube.create(resources.storageClasses, aStorageClass(), { signal });
    const stage = new Stage(world, driver, false);
    let isGivenUp = false;
    const lost = {
      kind: "PersistentVolume",
      lateKind: "PersistentVolumeClaim",
      isLate: false,
      async happens(name: string) {
        lost.isLate = isLagging === true;
        await giveUp(stage, name);
        await stage.deleteClaim();
        if (isForced) await stage.forceIntentOff();
        isGivenUp = true;
      },
    };
    const client = losingCreation(world, lost);
    let provisioner = startProvisioner(world.env(client), options);
    await kube.create(persistentVolumeClaims, aClaim(), { signal });
    await world.eventually("the volume given up", async () => isGivenUp);
    if (restarts) {
      await provisioner.stop();
      provisioner = startProvisioner(world.env(client), options);
    }
    await clock.advance(60_000);
    lost.isLate = false;
    await clock.advance(600_000);
    expect(await stage.volumes()).toEqual([]);
    expect(await stage.claim()).toBeUndefined();
    expect(stage.asked("DeleteVolume")).toBe(0);
    expect(stage.asked("CreateVolume")).toBe(1);
    expect(cloud.disks.size).toBe(1);
    await provisioner.stop();
  });
});
