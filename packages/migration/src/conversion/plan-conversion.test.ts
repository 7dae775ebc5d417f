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

  it("waits for a snapshot that is being taken", () => {
    const snapshot = (isReady: boolean) => ({
      metadata: { name: "s", namespace: "shop", uid: "s", resourceVersion: "1" },
      spec: { source: { persistentVolumeClaimName: "a" } },
      status: { readyToUse: isReady },
    });
    const view = { volumes: [volume("a", ebs("vol-a"))], claims: [claim("a")] };
    expect(planned({ ...view, snapshots: [snapshot(false)] }).refused).toEqual([["a", "snapshot"]]);
    expect(planned({ ...view, snapshots: [snapshot(true)] }).planned).toEqual(["a"]);
  });
});

it("gives the new volume a name that the API takes, and the same each time", () => {
  expect(newVolumeName("pvc-1")).toBe("pvc-1-csi");
  expect(newVolumeName("p".repeat(253))).toHaveLength(253);
});
