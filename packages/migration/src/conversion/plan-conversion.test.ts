import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { ConversionPlanOptions } from "./conversion-options.ts";
import type { ConversionView } from "./conversion-view.ts";
import { conversionPlanOf, newVolumeName } from "./plan-conversion.ts";

function volume(name: string, source: object, fields: { status?: object; claimRef?: object } = {}) {
  return {
    metadata: { name, uid: `uid-${name}`, resourceVersion: "1" },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      claimRef: { namespace: "shop", name, uid: `claim-${name}` },
      ...fields,
      ...source,
    },
    status: fields.status ?? { phase: "Bound" },
  } as unknown as Stored<PersistentVolume>;
}

function claim(name: string, metadata: object = {}) {
  return {
    metadata: { name, namespace: "shop", uid: `claim-${name}`, resourceVersion: "1", ...metadata },
    spec: { volumeName: name, accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    status: { phase: "Bound" },
  } as unknown as Stored<PersistentVolumeClaim>;
}

const driversNames = ["ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"];

function planned(view: Partial<ConversionView>, options: ConversionPlanOptions = {}) {
  const csiDrivers = driversNames.map((name) => ({
    metadata: { name },
  })) as unknown as ConversionView["csiDrivers"];
  const all: ConversionView = {
    volumes: [],
    claims: [],
    pods: [],
    nodes: [],
    attachments: [],
    statefulSets: [],
    deployments: [],
    replicaSets: [],
    csiNodes: [],
    snapshots: [],
    snapshotContents: [],
    classes: [],
    csiDrivers,
    ...view,
  };
  const { volumes, refused } = conversionPlanOf(all, options);
  return {
    planned: volumes.map((each) => each.volume),
    refused: refused.map((each) => [each.volume, ...each.refusals.map(({ code }) => code)]),
  };
}

const ebs = (volumeID: string) => ({ awsElasticBlockStore: { volumeID } });

describe("conversionPlanOf", () => {
  it("chooses by name, namespace, plugin and the labels of the claim", () => {
    const gce = { gcePersistentDisk: { pdName: "disk" } };
    const view = {
      volumes: [
        volume("a", ebs("vol-a")),
        volume("b", ebs("vol-b")),
        volume("c", gce),
        volume("d", { nfs: {} }),
      ],
      claims: [claim("a", { labels: { app: "x" } }), claim("b"), claim("c"), claim("d")],
    };
    expect(planned(view, { volumes: ["a"] }).planned).toEqual(["a"]);
    expect(planned(view, { namespaces: ["other"] }).planned).toEqual([]);
    expect(planned(view, { plugins: ["kubernetes.io/aws-ebs"] }).planned).toEqual(["a", "b"]);
    expect(planned(view, { selector: "app=x" }).planned).toEqual(["a"]);
    expect(planned(view, { volumes: ["none"] }).refused).toEqual([["none", "volume-not-found"]]);
  });

  it("refuses a volume that failed, has no claim, or cannot be translated", () => {
    const failed = { phase: "Failed", message: "no rights" };
    const view = {
      volumes: [
        volume("failed", ebs("vol-1"), { status: failed }),
        volume("free", ebs("vol-2"), { claimRef: {} }),
        volume("lost", ebs("vol-3")),
        volume("odd", ebs("aws://")),
      ],
      claims: [claim("failed"), claim("odd")],
    };
    expect(planned(view)).toEqual({
      planned: [],
      refused: [
        ["failed", "volume-failed"],
        ["free", "volume-without-claim"],
        ["lost", "volume-without-claim"],
        ["odd", "translation"],
      ],
    });
  });

  it.each<readonly [string, object, object]>([
    [
      "another project of GCE, in-tree without one",
      { gcePersistentDisk: { pdName: "disk" } },
      { csi: { driver: "pd.csi.storage.gke.io", volumeHandle: "projects/p/zones/UNSPECIFIED/disks/disk" } },
    ],
    [
      "another case of Azure",
      {
        azureDisk: {
          diskName: "d",
          kind: "Managed",
          diskURI: "/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/disks/d",
        },
      },
      {
        csi: {
          driver: "disk.csi.azure.com",
          volumeHandle: "/subscriptions/s/resourceGroups/g/providers/microsoft.compute/disks/d",
        },
      },
    ],
    ["the in-tree form with and without its zone", ebs("aws://eu-1a/vol-1"), ebs("vol-1")],
  ])("finds two volumes for one disk: %s", (_words, one, other) => {
    const view = { volumes: [volume("a", one), volume("b", other)], claims: [claim("a"), claim("b")] };
    const { refused } = planned(view, { volumes: ["a"] });
    expect(refused).toEqual([["a", "disk-shared"]]);
  });

  it("waits for a snapshot that is being taken, and refuses one of another disk or driver", () => {
    const snapshotOf = (readyToUse: boolean) => ({
      metadata: { name: "s", namespace: "shop", uid: "uid-s" },
      spec: { source: { persistentVolumeClaimName: "a" } },
      status: { readyToUse, boundVolumeSnapshotContentName: "content" },
    });
    const contentOf = (spec: object = {}) => ({
      metadata: { name: "content" },
      spec: {
        driver: "ebs.csi.aws.com",
        source: { volumeHandle: "vol-a" },
        volumeSnapshotRef: { uid: "uid-s" },
        ...spec,
      },
    });
    const outcome = (snapshot: object, contents: readonly object[]) => {
      const view = {
        volumes: [volume("a", ebs("vol-a"))],
        claims: [claim("a")],
        snapshots: [snapshot],
        snapshotContents: contents,
      } as unknown as Partial<ConversionView>;
      return planned(view);
    };
    expect(outcome(snapshotOf(true), [contentOf()]).planned).toEqual(["a"]);
    // An imported one: its disk is not known.
    expect(outcome(snapshotOf(true), [contentOf({ source: { snapshotHandle: "snap-1" } })]).planned).toEqual([
      "a",
    ]);
    for (const [snapshot, contents] of [
      [snapshotOf(false), [contentOf()]],
      [snapshotOf(true), []],
      [snapshotOf(true), [contentOf({ driver: "kubernetes.io/aws-ebs" })]],
      [snapshotOf(true), [contentOf({ source: { volumeHandle: "vol-b" } })]],
      [snapshotOf(true), [contentOf({ volumeSnapshotRef: { uid: "other" } })]],
    ] as const) {
      expect(outcome(snapshot, contents).refused, JSON.stringify(contents)).toEqual([["a", "snapshot"]]);
    }
  });
});

it("gives the new volume a name that the API takes, and the same each time", () => {
  expect(newVolumeName("pvc-1")).toBe("pvc-1-csi");
  expect(newVolumeName("p".repeat(253))).toHaveLength(253);
});
