/** Conversions against the persistent-volume controller, under the virtual clock. */
import { interceptWrites, type KubeClient, resources } from "@longshore/kube";
import { underCrossingLease } from "@longshore/migration";
import { afterEach, describe, expect, test } from "vitest";
import { type ConversionWorld, conversionWorld } from "./conversion-world.ts";
import { missingRights, recordingClient } from "./rights-asked.ts";

const worlds: ConversionWorld[] = [];
afterEach(async () => {
  for (const { plane } of worlds.splice(0)) await plane.stop();
});

async function world(): Promise<ConversionWorld> {
  const made = await conversionWorld();
  worlds.push(made);
  return made;
}

describe("a bound volume", () => {
  test("becomes a CSI one on the same disk, with its claim, its policy and no call of the cloud", async () => {
    const { pair, run, claim, volume, cloud, driver, host } = await world();
    await pair("data");
    const before = await claim("data");
    const result = await run({ backupDir: "/backup" });
    expect(result.failed).toEqual([]);
    expect(result.converted).toEqual([{ volume: "pv-data", requests: expect.any(Number) }]);
    expect(result.converted[0]?.requests).toBeLessThanOrEqual(30);
    expect(await volume("pv-data")).toBeUndefined();
    const [now, made] = [await claim("data"), await volume("pv-data-csi")];
    expect(now?.metadata.uid).not.toBe(before?.metadata.uid);
    expect(now).toMatchObject({
      metadata: { labels: { app: "data" } },
      spec: { volumeName: "pv-data-csi" },
      status: { phase: "Bound" },
    });
    expect(made).toMatchObject({
      metadata: { annotations: { "pv.kubernetes.io/provisioned-by": driver } },
      spec: {
        csi: { driver, volumeHandle: "vol-data" },
        persistentVolumeReclaimPolicy: "Delete",
        claimRef: { uid: now?.metadata.uid },
      },
      status: { phase: "Bound" },
    });
    expect(cloud.calls).toEqual([]);
    expect((await host.stat("/backup/pv-data/persistentvolume.json"))?.mode).toBe(0o600);
  });

  test("goes back to the in-tree one", async () => {
    const { pair, run, undo, claim, volume, cloud, journals } = await world();
    await pair("data");
    await run();
    expect((await undo()).failed).toEqual([]);
    expect(await volume("pv-data-csi")).toBeUndefined();
    expect(await volume("pv-data")).toMatchObject({
      spec: {
        awsElasticBlockStore: { volumeID: "vol-data" },
        persistentVolumeReclaimPolicy: "Delete",
        claimRef: { uid: (await claim("data"))?.metadata.uid },
      },
    });
    expect((await claim("data"))?.status?.phase).toBe("Bound");
    expect(cloud.calls).toEqual([]);
    expect([...(await journals()).values()]).toMatchObject([{ direction: "undo", finishedAt: /./ }]);
  });
});

test("a claim that another creates again in the gap gets the prepared volume, and no disk is made", async () => {
  const { plane, pair, run, claim, cloud, namespace } = await world();
  await pair("data");
  const { kube } = plane;
  let isTaken = false;
  const racing = interceptWrites(kube, async ({ verb, resource }, signal, send) => {
    if (verb === "create" && resource.kind === "PersistentVolumeClaim" && !isTaken) {
      isTaken = true;
      await kube.create(
        resources.persistentVolumeClaims,
        {
          apiVersion: "v1",
          kind: "PersistentVolumeClaim",
          metadata: { name: "data", namespace },
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "5Gi" } },
            storageClassName: "gp2",
          },
        },
        { signal },
      );
    }
    return send(signal);
  });
  const result = await run({}, racing);
  expect(isTaken).toBe(true);
  expect(result.failed).toEqual([]);
  expect(await claim("data")).toMatchObject({
    spec: { volumeName: "pv-data-csi" },
    status: { phase: "Bound" },
  });
  expect(cloud.calls).toEqual([]);
});

test("a claim that grows while it is converted keeps its size, on the way back, too", async () => {
  const { plane, pair, run, undo, claim, volume, namespace } = await world();
  await pair("data");
  const { kube } = plane;
  const storage = "8Gi";
  const mayGrow = { type: "merge", body: { allowVolumeExpansion: true } } as const;
  await plane.clock.run(
    kube.patch(resources.storageClasses, { name: "gp2" }, mayGrow, { signal: new AbortController().signal }),
  );
  const grow = async (signal: AbortSignal) => {
    const merge = (body: object) => ({ type: "merge", body }) as const;
    const ref = { namespace, name: "data" };
    const { persistentVolumeClaims, persistentVolumes } = resources;
    const wanted = merge({ spec: { resources: { requests: { storage } } } });
    await kube.patch(persistentVolumeClaims, ref, wanted, { signal });
    // As the expand controller does.
    const capacity = merge({ spec: { capacity: { storage } } });
    await kube.patch(persistentVolumes, { name: "pv-data" }, capacity, { signal });
    const grown = merge({ status: { capacity: { storage } } });
    await kube.patch(persistentVolumeClaims, ref, grown, { signal, subresource: "status" });
  };
  let hasGrown = false;
  const growing = interceptWrites(kube, async ({ verb, resource }, signal, send) => {
    const written = await send(signal);
    if (verb === "create" && resource.kind === "PersistentVolume" && !hasGrown) {
      hasGrown = true;
      await grow(signal);
    }
    return written;
  });
  const sizes = async (name: string) => [
    (await claim("data"))?.spec?.resources?.requests?.storage,
    (await volume(name))?.spec?.capacity?.storage,
  ];
  expect((await run({}, growing)).failed).toEqual([]);
  expect(hasGrown).toBe(true);
  expect(await sizes("pv-data-csi")).toEqual([storage, storage]);
  expect((await undo()).failed).toEqual([]);
  expect(await sizes("pv-data")).toEqual([storage, storage]);
});

test("goes on where its watches deliver nothing: the API server is asked", async () => {
  const { plane, pair, run, claim, volume, cloud } = await world();
  await pair("data");
  let opened = 0;
  const silent = new Proxy(plane.kube, {
    get(kube, name) {
      const method = Reflect.get(kube, name) as (...args: readonly unknown[]) => unknown;
      if (name !== "watch") return method.bind(kube);
      return async function* (_resource: unknown, { signal }: { readonly signal: AbortSignal }) {
        opened++;
        await new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
        );
        yield* [];
      };
    },
  });
  const result = await run({}, silent);
  expect(opened).toBeGreaterThan(0);
  expect(result.failed).toEqual([]);
  expect(await volume("pv-data")).toBeUndefined();
  expect(await claim("data")).toMatchObject({
    spec: { volumeName: "pv-data-csi" },
    status: { phase: "Bound" },
  });
  expect(cloud.calls).toEqual([]);
});

test("asks for no more than its printed rights allow", async () => {
  const made = await world();
  const { plane, pair, plan, undo } = made;
  await pair("data");
  const { kube: recording, asked } = recordingClient(plane.kube);
  await plan({}, recording);
  const work = (kube: KubeClient) => made.run({}, kube);
  await plane.clock.run(
    underCrossingLease({ ...plane.env, kube: recording }, { identity: "a" }, plane.signal, async () => {}),
  );
  expect((await work(recording)).failed).toEqual([]);
  expect((await undo({}, recording)).failed).toEqual([]);
  expect(missingRights(asked)).toEqual([]);
  expect(asked).toContain("delete /persistentvolumeclaims");
});
