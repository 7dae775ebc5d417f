/** A crash at every point between the calls of the snapshot controller and the snapshotter. */
import { isNotFound, type KubeClient, resources } from "@longshore/kube";
import { snapshotResources } from "@longshore/storage";
import { type CrashFlow, crashAtEveryPoint, crashInPairs, Life, Succession } from "@longshore/testing/kube";
import { describe, expect, it } from "vitest";
import type { SidecarEnv } from "../common/sidecar-env.ts";
import { startSnapshotter } from "../index.ts";
import { mortal } from "../testing/crashing.ts";
import { addBoundClaim, aSnapshot, aSnapshotClass, snapshotWorld } from "../testing/snapshot-world.ts";
import { startSnapshotController } from "./index.ts";

const { volumeSnapshots, volumeSnapshotClasses, volumeSnapshotContents } = snapshotResources;

type Part = "controller" | "snapshotter";
const start: Record<Part, (env: SidecarEnv) => { stop(): Promise<void> }> = {
  controller: (env) => startSnapshotController(env),
  snapshotter: (env) => startSnapshotter(env),
};

/** What happens besides the crash. */
type Story = "deletedWhenReady" | "deletedAtTheCrash" | "kept";

const flowOf =
  (mortalPart: Part, story: Story): CrashFlow =>
  async (points) => {
    const world = await snapshotWorld({ looksUntilReady: 1 });
    const { kube, signal } = world;
    const remove = () =>
      kube.delete(volumeSnapshots, { namespace: "default", name: "s" }, { signal }).catch((error) => {
        if (!isNotFound(error)) throw error;
      });
    await addBoundClaim(world, "data");
    await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
    const other: Part = mortalPart === "controller" ? "snapshotter" : "controller";
    const parts = new Succession(
      points,
      (life) => start[mortalPart](mortal(world.env(), life)),
      async () => {
        if (story !== "deletedAtTheCrash") return;
        await remove();
        // The other one goes on alone for a while.
        await world.clock.sleep(5000, signal);
      },
    );
    const others = start[other](world.env());
    await kube.create(volumeSnapshots, aSnapshot(), { signal });
    if (story !== "deletedAtTheCrash") {
      await world.eventually("ready", async () => (await world.snapshot("s"))?.status?.readyToUse);
      expect(world.snapshots.byId.size).toBe(1);
    } else {
      await world.clock.advance(60_000);
    }
    if (story !== "kept") {
      await remove();
      await world.eventually("gone", async () => {
        const contents = await kube.list(volumeSnapshotContents, { signal });
        return (await world.snapshot("s")) === undefined && contents.items.length === 0;
      });
      expect(world.snapshots.byId.size).toBe(0);
    }
    await world.eventually("the claim is let go", async () => {
      const ref = { namespace: "default", name: "data" };
      const claim = await kube.get(resources.persistentVolumeClaims, ref, { signal });
      return !claim?.metadata.finalizers?.includes("snapshot.storage.kubernetes.io/pvc-as-source-protection");
    });
    await world.clock.run(parts.stop());
    await others.stop();
    return parts.calls;
  };

/** A life in which something else happens just before the n-th call. */
class Interrupted extends Life {
  readonly #at: number;
  readonly #happens: () => Promise<unknown>;

  constructor(at: number, happens: () => Promise<unknown>) {
    super();
    this.#at = at;
    this.#happens = happens;
  }

  override async call<T>(what: string, make: () => Promise<T>): Promise<T> {
    const answer = super.call(what, async () => {
      if (this.calls === this.#at) await this.#happens();
      return make();
    });
    return answer;
  }
}

const interruptions = {
  "the snapshot is deleted": (kube: KubeClient) =>
    kube.delete(volumeSnapshots, { namespace: "default", name: "s" }, { signal: never }),
  "the content is deleted": async (kube: KubeClient) => {
    const { items } = await kube.list(volumeSnapshotContents, { signal: never });
    for (const { metadata } of items) {
      await kube.delete(volumeSnapshotContents, { name: metadata.name }, { signal: never });
    }
  },
  "the claim is deleted": (kube: KubeClient) =>
    kube.delete(resources.persistentVolumeClaims, { namespace: "default", name: "data" }, { signal: never }),
} as const;
const never = new AbortController().signal;

describe.each(["controller", "snapshotter"] as const)("while the %s works", (mortalPart) => {
  it.each(Object.entries(interruptions))(
    "and %s, at any point, no snapshot is left behind",
    async (_, happens) => {
      const run = async (at: number) => {
        const world = await snapshotWorld({ looksUntilReady: 1 });
        const { kube, signal } = world;
        await addBoundClaim(world, "data");
        await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
        const life = new Interrupted(at, () => happens(kube));
        const other: Part = mortalPart === "controller" ? "snapshotter" : "controller";
        const parts = [start[mortalPart](mortal(world.env(), life)), start[other](world.env())];
        await kube.create(volumeSnapshots, aSnapshot(), { signal });
        await world.clock.advance(120_000);
        const { calls } = life;
        await kube.delete(volumeSnapshots, { namespace: "default", name: "s" }, { signal }).catch((error) => {
          if (!isNotFound(error)) throw error;
        });
        await world.eventually(`all gone, at ${at}: ${life.log.join(", ")}`, async () => {
          const contents = await kube.list(volumeSnapshotContents, { signal });
          return (await world.snapshot("s")) === undefined && contents.items.length === 0;
        });
        expect(world.snapshots.byId.size, `at ${at}: ${life.log.join(", ")}`).toBe(0);
        for (const part of parts) await part.stop();
        return calls;
      };
      const calls = await run(0);
      expect(calls).toBeGreaterThan(3);
      for (let at = 1; at <= calls; at++) await run(at);
    },
  );
});

describe.each(["controller", "snapshotter"] as const)("a crash of the %s", (part) => {
  it.each(["deletedWhenReady", "deletedAtTheCrash", "kept"] as const)(
    "leaks and loses no snapshot: %s",
    async (story) => {
      const choice = { name: `snapshot ${part}, ${story}` };
      const single = await crashAtEveryPoint(flowOf(part, story), choice);
      console.log(single.summary);
      expect(single.failures).toEqual([]);
      expect(single.played).toBeGreaterThan(10);
      const pairs = await crashInPairs(flowOf(part, story), 20, choice);
      console.log(pairs.summary);
      expect(pairs.failures).toEqual([]);
    },
    3_600_000,
  );
});
