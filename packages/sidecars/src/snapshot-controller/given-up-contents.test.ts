/**
 * A VolumeSnapshotContent whose creation got no answer was stored, cut by the driver, set to Retain and given up with its
 * snapshot by the time that the controller learns of the lost connection: who gave it up has what the driver keeps.
 */
import { snapshotResources } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { startSnapshotter } from "../index.ts";
import { losingCreation } from "../testing/lost-creation.ts";
import {
  addBoundClaim,
  aSnapshot,
  aSnapshotClass,
  type SnapshotWorld,
  snapshotWorld,
} from "../testing/snapshot-world.ts";
import { startSnapshotController } from "./index.ts";

const { volumeSnapshots, volumeSnapshotContents, volumeSnapshotClasses } = snapshotResources;
const ref = { namespace: "default", name: "s" };
const merge = (body: object) => ({ type: "merge", body }) as const;
const unheld = merge({ metadata: { finalizers: null } });

/** The administrator's part, once the driver has cut the snapshot. */
async function giveUp({ kube, signal, clock, snapshots }: SnapshotWorld, name: string): Promise<void> {
  while (snapshots.byId.size === 0) await clock.sleep(100, signal);
  await clock.sleep(1000, signal);
  await kube.patch(volumeSnapshotContents, { name }, merge({ spec: { deletionPolicy: "Retain" } }), {
    signal,
  });
  await kube.delete(volumeSnapshots, ref, { signal });
  await kube.patch(volumeSnapshotContents, { name }, unheld, { signal });
  await kube.delete(volumeSnapshotContents, { name }, { signal });
}

describe("a content that was kept and given up before the next attempt does not come back,", () => {
  it.each([
    { name: "its snapshot being deleted" },
    { name: "its snapshot being deleted, which the cache does not show yet", isLagging: true },
    { name: "its snapshot deleted by force", isForced: true },
    {
      name: "its snapshot deleted by force, which the cache does not show yet",
      isForced: true,
      isLagging: true,
    },
  ])("$name", async ({ isForced = false, isLagging = false }) => {
    const world = await snapshotWorld();
    const { kube, signal, clock } = world;
    await addBoundClaim(world, "data");
    await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
    let isGivenUp = false;
    const lost = {
      kind: "VolumeSnapshotContent",
      lateKind: "VolumeSnapshot",
      isLate: false,
      async happens(name: string) {
        lost.isLate = isLagging;
        await giveUp(world, name);
        if (isForced) await kube.patch(volumeSnapshots, ref, unheld, { signal });
        isGivenUp = true;
      },
    };
    const client = losingCreation(world, lost);
    const parts = [startSnapshotController(world.env(client)), startSnapshotter(world.env())];
    await kube.create(volumeSnapshots, aSnapshot(), { signal });
    await world.eventually("the content given up", async () => isGivenUp);
    await clock.advance(60_000);
    expect(await world.contents()).toEqual([]);
    lost.isLate = false;
    await world.eventually("gone", async () => (await world.snapshot("s")) === undefined);
    await clock.advance(600_000);
    expect(await world.contents()).toEqual([]);
    expect(world.snapshots.byId.size).toBe(1);
    expect(world.cloud.calls.filter((call) => call.startsWith("DeleteSnapshot"))).toEqual([]);
    for (const part of parts) await part.stop();
  });
});
