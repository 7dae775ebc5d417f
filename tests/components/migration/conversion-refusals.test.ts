/** What is not converted: each by name, with the remedy, and with nothing changed. */
import { KubeApiError, type KubeClient, type KubeObject, type Patch, resources } from "@longshore/kube";
import { planConversion } from "@longshore/migration";
import { afterEach, describe, expect, test } from "vitest";
import { type ConversionWorld, conversionWorld } from "./conversion-world.ts";

const worlds: ConversionWorld[] = [];
afterEach(async () => {
  for (const { plane } of worlds.splice(0)) await plane.stop();
});

async function world(): Promise<ConversionWorld> {
  const made = await conversionWorld();
  worlds.push(made);
  return made;
}

const pod = (name: string, claimName: string, ownerReferences?: readonly object[]) =>
  ({
    metadata: { name, namespace: "shop", ...(ownerReferences === undefined ? {} : { ownerReferences }) },
    spec: {
      containers: [{ name: "c", image: "i" }],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName } }],
    },
  }) as unknown as KubeObject;

/** All objects of storage, as they are stored. */
async function stored({ plane }: ConversionWorld): Promise<string> {
  const all = [
    await plane.list(resources.persistentVolumes),
    await plane.list(resources.persistentVolumeClaims),
  ];
  return JSON.stringify(
    all.flat().map(({ metadata }) => [metadata.name, metadata.uid, metadata.resourceVersion]),
  );
}

type Arrange = (made: ConversionWorld) => Promise<unknown>;

describe("is refused by name, and nothing is changed", () => {
  test.each<readonly [string, RegExp, Arrange]>([
    [
      "volume-in-use",
      /PersistentVolume pv-data: in use by Pod shop\/p; end them/,
      ({ plane }) => plane.create(resources.pods, pod("p", "data")),
    ],
    [
      "claim-deleting",
      /PersistentVolumeClaim shop\/data \(metadata.deletionTimestamp\): it is being deleted, kept by example.com\/kept/,
      async ({ plane }) => {
        const ref = { namespace: "shop", name: "data" };
        const finalizers = ["example.com/kept"];
        await plane.merge(resources.persistentVolumeClaims, ref, { metadata: { finalizers } });
        await plane.delete(resources.persistentVolumeClaims, "data", "shop");
      },
    ],
    [
      "volume-deleting",
      /PersistentVolume pv-data \(metadata.deletionTimestamp\): it is being deleted, and its policy is Delete/,
      ({ plane }) => plane.delete(resources.persistentVolumes, "pv-data"),
    ],
    [
      "volume-released",
      /PersistentVolume pv-data \(status.phase\): its claim is gone/,
      async ({ plane }) => {
        await plane.merge(
          resources.persistentVolumes,
          { name: "pv-data" },
          { spec: { persistentVolumeReclaimPolicy: "Retain" } },
        );
        await plane.delete(resources.persistentVolumeClaims, "data", "shop");
        await plane.pass(30_000);
      },
    ],
    [
      "disk-shared",
      /PersistentVolume pv-data \(spec\): PersistentVolume other stands for the same disk/,
      ({ plane, driver }) =>
        plane.create(resources.persistentVolumes, {
          metadata: { name: "other" },
          spec: {
            accessModes: ["ReadWriteOnce"],
            capacity: { storage: "5Gi" },
            csi: { driver, volumeHandle: "vol-data" },
            persistentVolumeReclaimPolicy: "Retain",
            storageClassName: "none",
          },
        }),
    ],
    [
      "name-taken",
      /PersistentVolume pv-data-csi \(metadata.name\): it is there already/,
      ({ plane }) =>
        plane.create(resources.persistentVolumes, {
          metadata: { name: "pv-data-csi" },
          spec: {
            accessModes: ["ReadWriteOnce"],
            capacity: { storage: "5Gi" },
            awsElasticBlockStore: { volumeID: "vol-other" },
            persistentVolumeReclaimPolicy: "Retain",
            storageClassName: "none",
          },
        }),
    ],
    [
      "owner-recreates-claim",
      /PersistentVolumeClaim shop\/data \(metadata.ownerReferences\): Database db owns it/,
      ({ plane }) =>
        ownedBy(plane, {
          apiVersion: "db.example/v1",
          kind: "Database",
          name: "db",
          uid: "d",
          controller: true,
        }),
    ],
    [
      "owner-needs-action",
      /Pod web-0 owns it, with which it is deleted.*whenScaled to Retain/,
      ({ plane }) => ownedBy(plane, { apiVersion: "v1", kind: "Pod", name: "web-0", uid: "p" }),
    ],
    [
      "driver-missing",
      /no node has the driver ebs.csi.aws.com; deploy the driver first/,
      ({ plane, driver }) => plane.delete(resources.csiDrivers, driver),
    ],
  ])("%s", async (code, words, arrange) => {
    const made = await world();
    await made.pair("data");
    await arrange(made);
    await made.plane.pass(2000);
    const before = await stored(made);
    const { volumes, refused } = await made.plan();
    expect(volumes.map(({ volume }) => volume)).not.toContain("pv-data");
    const refusals = refused.filter(({ volume }) => volume === "pv-data").flatMap((each) => each.refusals);
    expect(refusals.map((each) => each.code)).toEqual([code]);
    const [first] = refusals;
    expect(
      `${first?.object}${first?.field === undefined ? "" : ` (${first.field})`}: ${first?.reason}; ${first?.remedy}`,
    ).toMatch(words);
    expect(await stored(made)).toBe(before);
    expect(made.cloud.calls).toEqual([]);
  });

  test.each([
    [
      "quota",
      403,
      'claims "data-longshore" is forbidden: exceeded quota: q, requested: persistentvolumeclaims=1',
    ],
    ["admission", 403, 'admission webhook "w.example" denied the request: no'],
    ["admission", 500, 'failed calling webhook "w.example": connection refused'],
  ] as const)("%s: %d %s", async (code, status, message) => {
    const made = await world();
    await made.pair("data");
    const { plane } = made;
    const before = await stored(made);
    const refusing: KubeClient = Object.assign(Object.create(plane.kube), {
      patch(resource: { kind: string }, ref: never, patch: Patch, options: never) {
        if (resource.kind === "PersistentVolumeClaim") {
          expect(patch.dryRun).toBe(true);
          throw new KubeApiError({
            kind: "Status",
            apiVersion: "v1",
            status: "Failure",
            code: status,
            message,
          });
        }
        return plane.kube.patch(resource as never, ref, patch, options);
      },
      get: plane.kube.get.bind(plane.kube),
      list: plane.kube.list.bind(plane.kube),
      servedVersion: plane.kube.servedVersion.bind(plane.kube),
    });
    const plan = await plane.clock.run(
      planConversion({ clock: plane.clock, kube: refusing }, {}, plane.signal),
    );
    expect(plan.refused).toEqual([
      {
        volume: "pv-data",
        refusals: [expect.objectContaining({ code, object: "PersistentVolumeClaim shop/data" })],
      },
    ]);
    expect(await stored(made)).toBe(before);
  });
});

test("a workload whose claims go when it is scaled down is not scaled", async () => {
  const made = await world();
  const { plane } = made;
  await made.pair("data");
  const set = await plane.create(resources.statefulSets, {
    metadata: { name: "web", namespace: "shop" },
    spec: {
      replicas: 1,
      serviceName: "web",
      selector: { matchLabels: { app: "web" } },
      template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "i" }] } },
      persistentVolumeClaimRetentionPolicy: { whenScaled: "Delete" },
    } as never,
  });
  const owner = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    name: "web",
    uid: set.metadata.uid,
    controller: true,
  };
  await plane.create(resources.pods, pod("web-0", "data", [owner]));
  const { refused } = await made.plan({ scaleDown: true });
  expect(refused).toMatchObject([
    { refusals: [{ code: "owner-needs-action", object: "StatefulSet shop/web", reason: /Delete/ }] },
  ]);
});

function ownedBy(plane: ConversionWorld["plane"], owner: object) {
  const ref = { namespace: "shop", name: "data" };
  return plane.merge(resources.persistentVolumeClaims, ref, { metadata: { ownerReferences: [owner] } });
}
