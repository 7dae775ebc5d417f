/** Writes that are refused, and writes with an unknown outcome: all end in the right state. */
import {
  interceptWrites,
  isNotFound,
  KubeApiError,
  KubeTransportError,
  resources,
  type WriteInterceptor,
} from "@longshore/kube";
import { SeededRandom } from "@longshore/runtime";
import { snapshotResources } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { startSnapshotter } from "../index.ts";
import {
  addBoundClaim,
  aGroupClass,
  aGroupSnapshot,
  aSnapshot,
  aSnapshotClass,
  snapshotWorld,
} from "../testing/snapshot-world.ts";
import { startSnapshotController } from "./index.ts";

const {
  volumeSnapshots,
  volumeSnapshotContents,
  volumeSnapshotClasses,
  volumeGroupSnapshots,
  volumeGroupSnapshotClasses,
  volumeGroupSnapshotContents,
} = snapshotResources;
const groupSnapshots = true;
const backoff = { initialMs: 1000, maximumMs: 10_000 };

const refusals = [
  { code: 409, reason: "Conflict" },
  { code: 429, reason: "TooManyRequests" },
  { code: 500, reason: "InternalError" },
  { code: 403, reason: "Forbidden" },
] as const;

/** One write in three fails: refused, or done and not answered. */
function faulty(random: SeededRandom): WriteInterceptor {
  return async (_, signal, send) => {
    const draw = random.below(12, "fault");
    const refusal = refusals[draw];
    if (refusal !== undefined && draw < 3 + random.below(2, "forbidden")) {
      throw new KubeApiError({ kind: "Status", apiVersion: "v1", status: "Failure", ...refusal });
    }
    const answer = await send(signal);
    if (draw === 11) throw new KubeTransportError("the connection broke");
    return answer;
  };
}

describe("with an API server that fails", () => {
  it.each(Array.from({ length: 12 }, (_, at) => at + 1))("seed %d", async (seed) => {
    const world = await snapshotWorld({ groups: true, looksUntilReady: 2 });
    const { kube, signal, cloud } = world;
    const random = new SeededRandom(seed);
    for (const name of ["data", "log"]) await addBoundClaim(world, name, undefined, { app: "db" });
    await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
    await kube.create(volumeGroupSnapshotClasses, aGroupClass(), { signal });
    cloud.next("CreateSnapshot", { code: "UNAVAILABLE" }, { code: "ABORTED" });
    cloud.next("CreateVolumeGroupSnapshot", { lost: true }, { code: "INTERNAL" });
    cloud.next("DeleteSnapshot", { lost: true });
    const bad = interceptWrites(kube, faulty(random));
    const options = { groupSnapshots, backoff };
    const parts = [
      startSnapshotController(world.env(bad), options),
      startSnapshotter(world.env(bad), { ...options, timeoutMs: 5000 }),
    ];
    await kube.create(volumeSnapshots, aSnapshot(), { signal });
    await kube.create(volumeGroupSnapshots, aGroupSnapshot(), { signal });
    const group = { namespace: "default", name: "g" };
    await world.eventually("all ready", async () => {
      const single = await world.snapshot("s");
      const both = await kube.get(volumeGroupSnapshots, group, { signal });
      return single?.status?.readyToUse === true && both?.status?.readyToUse === true;
    });
    expect(world.snapshots.byId.size).toBe(3);
    await kube.delete(volumeGroupSnapshots, group, { signal });
    await kube.delete(volumeSnapshots, { namespace: "default", name: "s" }, { signal });
    await world.eventually("all gone", async () => {
      const lists = await Promise.all([
        kube.list(volumeSnapshots, { signal }),
        kube.list(volumeSnapshotContents, { signal }),
        kube.list(volumeGroupSnapshots, { signal }),
        kube.list(volumeGroupSnapshotContents, { signal }),
      ]);
      return lists.every(({ items }) => items.length === 0);
    });
    expect(world.snapshots.byId.size).toBe(0);
    await world.eventually("the claims are let go", async () => {
      const { items } = await kube.list(resources.persistentVolumeClaims, { signal });
      return items.every(
        ({ metadata }) =>
          !metadata.finalizers?.includes("snapshot.storage.kubernetes.io/pvc-as-source-protection"),
      );
    });
    for (const part of parts) await part.stop();
  });
});

describe("a failure in other words each time", () => {
  it("is retried with back-off", async () => {
    const world = await snapshotWorld();
    const { kube, signal, clock } = world;
    await addBoundClaim(world, "data");
    await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
    let attempts = 0;
    const bad = interceptWrites(kube, async ({ resource }, passSignal, send) => {
      if (resource.kind !== "VolumeSnapshotContent") return send(passSignal);
      attempts++;
      const message = `the store does not answer (request ${attempts})`;
      throw new KubeApiError({ kind: "Status", apiVersion: "v1", status: "Failure", code: 500, message });
    });
    const controller = startSnapshotController(world.env(bad));
    await kube.create(volumeSnapshots, aSnapshot(), { signal });
    await clock.advance(60_000);
    expect(attempts).toBeGreaterThan(3);
    expect(attempts).toBeLessThan(12);
    expect((await world.snapshot("s"))?.status?.error?.message).toContain("(request ");
    await controller.stop();
  });
});

describe("two at once", () => {
  it("a claim that one snapshot lets go is held for the other that is not ready", async () => {
    const world = await snapshotWorld({ looksUntilReady: 3 });
    const { kube, signal } = world;
    await addBoundClaim(world, "data");
    await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
    const controller = startSnapshotController(world.env());
    await kube.create(volumeSnapshots, aSnapshot(), { signal });
    await world.eventually("a content", async () => (await world.contents()).length === 1);
    const claim = { namespace: "default", name: "data" };
    const body = { metadata: { finalizers: null } };
    await kube.patch(resources.persistentVolumeClaims, claim, { type: "merge", body }, { signal });
    await world.eventually("held again", async () => {
      const found = await kube.get(resources.persistentVolumeClaims, claim, { signal });
      return found?.metadata.finalizers?.includes("snapshot.storage.kubernetes.io/pvc-as-source-protection");
    });
    await controller.stop();
    await kube.delete(volumeSnapshots, { namespace: "default", name: "s" }, { signal }).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
  });
});
