/** A crash at every point between the calls of the snapshot controller and the snapshotter. */
import { isNotFound, resources } from "@longshore/kube";
import { snapshotResources } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import type { SidecarEnv } from "../common/env.ts";
import { startSnapshotController, startSnapshotter } from "../index.ts";
import { Life, mortal } from "../testing/crashing.ts";
import { addBoundClaim, aSnapshot, aSnapshotClass, snapshotWorld } from "../testing/snapshot-world.ts";

const { volumeSnapshots, volumeSnapshotClasses, volumeSnapshotContents } = snapshotResources;

type Part = "controller" | "snapshotter";
const start: Record<Part, (env: SidecarEnv) => { stop(): Promise<void> }> = {
  controller: (env) => startSnapshotController(env),
  snapshotter: (env) => startSnapshotter(env),
};

/** What happens besides; gives how many snapshots the driver has in the end. */
type Story = "deletedWhenReady" | "deletedAtOnce" | "kept";

async function live(mortalPart: Part, story: Story, life: Life): Promise<Life> {
  const world = await snapshotWorld({ looksUntilReady: 1 });
  const { kube, signal } = world;
  const trail = () => `${story}, ${mortalPart}: ${life.log.join(", ")}`;
  await addBoundClaim(world, "data");
  await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
  const other: Part = mortalPart === "controller" ? "snapshotter" : "controller";
  let part = start[mortalPart](mortal(world.env(), life));
  void life.death.then(() => {
    part = start[mortalPart](world.env());
  });
  const others = start[other](world.env());
  await kube.create(volumeSnapshots, aSnapshot(), { signal });
  if (story !== "deletedAtOnce") {
    await world.eventually(`ready: ${trail()}`, async () => (await world.snapshot("s"))?.status?.readyToUse);
    expect(world.snapshots.byId.size, trail()).toBe(1);
  } else {
    await world.clock.advance(10);
  }
  if (story !== "kept") {
    await kube.delete(volumeSnapshots, { namespace: "default", name: "s" }, { signal }).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
    await world.eventually(`gone: ${trail()}`, async () => {
      const contents = await kube.list(volumeSnapshotContents, { signal });
      return (await world.snapshot("s")) === undefined && contents.items.length === 0;
    });
    expect(world.snapshots.byId.size, trail()).toBe(0);
  }
  await world.eventually(`the claim is let go: ${trail()}`, async () => {
    const ref = { namespace: "default", name: "data" };
    const claim = await kube.get(resources.persistentVolumeClaims, ref, { signal });
    return !claim?.metadata.finalizers?.includes("snapshot.storage.kubernetes.io/pvc-as-source-protection");
  });
  await part.stop();
  await others.stop();
  return life;
}

describe.each(["controller", "snapshotter"] as const)("a crash of the %s", (part) => {
  it.each(["deletedWhenReady", "deletedAtOnce", "kept"] as const)(
    "leaks and loses no snapshot: %s",
    async (story) => {
      const { calls } = await live(part, story, new Life());
      expect(calls).toBeGreaterThan(0);
      for (let at = 1; at <= calls; at++) {
        for (const effect of ["before", "after"] as const) await live(part, story, new Life(at, effect));
      }
    },
  );
});
