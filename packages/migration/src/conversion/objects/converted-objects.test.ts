/** Every plugin's volumes, from the recorded inputs of the translation: what is carried over, and each difference by name. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from "@longshore/kube";
import {
  allPlugins,
  restoreInTreePV,
  TranslationError,
  translateInTreePVToCSI,
} from "@longshore/translation";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { vectorCases } from "../../../../../scripts/vectors/location.ts";
import { convertedClaim } from "./converted-claim.ts";
import { convertedClass } from "./converted-class.ts";
import { convertedVolume, withSecretNamespace } from "./converted-volume.ts";

interface Recorded {
  readonly id: string;
  readonly op: string;
  readonly set: string;
  readonly plugin?: string;
  readonly input: {
    readonly pv?: PersistentVolume;
    readonly inTreePluginName?: string;
    readonly storageClass?: StorageClass;
  };
  readonly output?: PersistentVolume;
  readonly error?: string;
}

const recorded = vectorCases<Recorded>("translation");
const volumes = recorded.filter(({ op, error }) => op === "translateInTreePVToCSI" && error === undefined);

/** What users and controllers put on a volume beside its source. */
const around = {
  metadata: {
    name: "pv-a",
    uid: "u-1",
    resourceVersion: "7",
    creationTimestamp: "2020-01-01T00:00:00Z",
    labels: { team: "shop" },
    annotations: {
      "example.com/note": "kept",
      "pv.kubernetes.io/bound-by-controller": "yes",
      "pv.kubernetes.io/provisioned-by": "kubernetes.io/x",
      "pv.kubernetes.io/migrated-to": "x.csi.example",
      "kubectl.kubernetes.io/last-applied-configuration": "{}",
    },
    ownerReferences: [{ apiVersion: "example.com/v1", kind: "Shop", name: "s", uid: "u-2" }],
    finalizers: [
      "kubernetes.io/pv-protection",
      "kubernetes.io/pv-controller",
      "external-provisioner.volume.kubernetes.io/finalizer",
      "external-attacher/x-csi-example",
      "example.com/keep",
    ],
  },
  spec: {
    capacity: { storage: "5Gi" },
    storageClassName: "fast",
    mountOptions: ["noatime"],
    persistentVolumeReclaimPolicy: "Delete",
    claimRef: {
      kind: "PersistentVolumeClaim",
      namespace: "shop",
      name: "data",
      uid: "u-3",
      resourceVersion: "9",
    },
  },
} satisfies PersistentVolume;

function dressed(pv: PersistentVolume): PersistentVolume {
  const { labels, annotations } = pv.metadata ?? {};
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      ...around.metadata,
      labels: { ...around.metadata.labels, ...labels },
      annotations: { ...around.metadata.annotations, ...annotations },
    },
    spec: { ...pv.spec, ...around.spec },
  };
}

function volumeOf(pv: PersistentVolume) {
  const converted = convertedVolume(pv, { newName: "pv-a-csi" });
  if ("failure" in converted) throw new Error(converted.failure);
  return converted;
}

/** Inputs that the recorder made and the API refuses: the conversion names their fault. */
const usable = volumes.filter(
  ({ input }) => !("failure" in convertedVolume(input.pv ?? {}, { newName: "n" })),
);

test("the recorded inputs are of all eight plugins", () => {
  const drivers = new Set(usable.map(({ input }) => volumeOf(input.pv ?? {}).object.spec?.csi?.driver));
  expect([...drivers].sort()).toEqual(allPlugins.map(({ driverName }) => driverName).sort());
  expect(usable.length).toBeGreaterThan(500);
});

test("the source, its modes and its affinity are those that the translation makes", () => {
  for (const { input } of usable) {
    const pv = dressed(input.pv ?? {});
    const { object } = volumeOf(pv);
    const { spec } = translateInTreePVToCSI(withSecretNamespace(pv));
    expect(object.spec?.csi).toEqual(spec?.csi);
    expect(object.spec?.accessModes).toEqual(spec?.accessModes ?? []);
    expect(object.spec?.nodeAffinity).toEqual(spec?.nodeAffinity);
  }
});

test("what is not of the source is carried over, and what controllers wrote is not", () => {
  for (const { input } of usable) {
    const pv = dressed(input.pv ?? {});
    const { object } = volumeOf(pv);
    const annotated = pv.metadata?.annotations?.["volume.beta.kubernetes.io/mount-options"] !== undefined;
    expect(object.metadata?.labels).toEqual(pv.metadata?.labels);
    expect(object.metadata?.ownerReferences).toEqual(around.metadata.ownerReferences);
    expect(object.metadata?.finalizers).toEqual(["example.com/keep"]);
    expect(object.metadata).not.toHaveProperty("uid");
    expect(object.metadata).not.toHaveProperty("resourceVersion");
    expect(object.metadata?.annotations).toMatchObject({
      "example.com/note": "kept",
      "pv.kubernetes.io/provisioned-by": object.spec?.csi?.driver,
    });
    for (const gone of ["bound-by-controller", "migrated-to"]) {
      expect(object.metadata?.annotations).not.toHaveProperty([`pv.kubernetes.io/${gone}`]);
    }
    expect(object.spec).toMatchObject({
      capacity: { storage: "5Gi" },
      storageClassName: "fast",
      persistentVolumeReclaimPolicy: "Retain",
      claimRef: { kind: "PersistentVolumeClaim", namespace: "shop", name: "data" },
    });
    if (!annotated) expect(object.spec?.mountOptions).toEqual(["noatime"]);
    expect(object.spec?.claimRef).not.toHaveProperty("uid");
    expect(object.spec?.volumeMode).toEqual(pv.spec?.volumeMode);
    expect(object).not.toHaveProperty("status");
  }
});

test("a secret without a namespace is that of the claim's namespace", () => {
  const { object } = volumeOf(
    dressed({ spec: { rbd: { image: "i", monitors: ["m"], secretRef: { name: "s" } } } }),
  );
  const secret = { name: "s", namespace: "shop" };
  expect(object.spec?.csi).toMatchObject({ nodeStageSecretRef: secret, controllerExpandSecretRef: secret });
});

test("the converted volume stands for the same disk: translated back, its source is the one it had", () => {
  let compared = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...usable),
      fc.constantFrom("Filesystem", "Block"),
      ({ input }, volumeMode) => {
        const pv = dressed(input.pv ?? {});
        const before = { ...pv, spec: { ...pv.spec, volumeMode } };
        // The handle of an Azure file share has the name of the in-tree volume in it, by which the way back compares them.
        const { object } = volumeOf(before);
        const again = restored({ ...object, metadata: { ...object.metadata, name: "pv-a" } });
        const direct = restored(translateInTreePVToCSI(withSecretNamespace(before)) as PersistentVolume);
        expect(again).toEqual(direct);
        if (again !== undefined) compared++;
      },
    ),
    { numRuns: 500 },
  );
  expect(compared).toBeGreaterThan(100);
});

/** Every member of the restored spec that is a source of a plugin; undefined where the translation has no way back. */
function restored(pv: PersistentVolume): object | undefined {
  try {
    const { spec } = restoreInTreePV(pv).output;
    return Object.fromEntries(allPlugins.map(({ source }) => [source, spec?.[source]]));
  } catch (error) {
    if (error instanceof TranslationError) return undefined;
    throw error;
  }
}

const ebs: PersistentVolume = {
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "pv-a", annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" } },
  spec: {
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "5Gi" },
    persistentVolumeReclaimPolicy: "Delete",
    awsElasticBlockStore: { volumeID: "vol-1", fsType: "ext4" },
    claimRef: { namespace: "shop", name: "data", uid: "u" },
  },
};

describe("a volume", () => {
  test("lists every difference, and nothing else", () => {
    const { differences } = volumeOf(ebs);
    expect(differences.map(({ field }) => field).sort()).toEqual([
      "metadata.annotations[pv.kubernetes.io/provisioned-by]",
      "metadata.name",
      "spec.awsElasticBlockStore",
      "spec.claimRef",
      "spec.csi",
      "spec.persistentVolumeReclaimPolicy",
    ]);
    expect(differences.filter(({ why }) => why === undefined)).toEqual([]);
  });

  test.each([
    ["Delete", "ebs.csi.aws.com"],
    ["Retain", undefined],
  ])("made by hand with policy %s gets the provisioner %s", (policy, provisioner) => {
    const { metadata: _metadata, ...rest } = ebs;
    const pv = {
      ...rest,
      metadata: { name: "pv-a" },
      spec: { ...ebs.spec, persistentVolumeReclaimPolicy: policy },
    };
    const annotations = volumeOf(pv).object.metadata?.annotations;
    expect(annotations?.["pv.kubernetes.io/provisioned-by"]).toBe(provisioner);
  });

  test("gets its mount options from the annotation that CSI drivers do not read", () => {
    const annotations = { "volume.beta.kubernetes.io/mount-options": "nouuid,noatime" };
    const { object, differences } = volumeOf({ ...ebs, metadata: { name: "pv-a", annotations } });
    expect(object.spec?.mountOptions).toEqual(["nouuid", "noatime"]);
    expect(object.metadata?.annotations).not.toHaveProperty(["volume.beta.kubernetes.io/mount-options"]);
    expect(differences.map(({ field }) => field)).toContain("spec.mountOptions");
  });

  test.each([
    [{ hostPath: { path: "/x" } }, /no source of an in-tree plugin/],
    [{ csi: { driver: "x.csi.example", volumeHandle: "h" } }, /driver x\.csi\.example already; give rules/],
    [{ awsElasticBlockStore: { volumeID: "" } }, /spec\.awsElasticBlockStore/],
    [{ rbd: { image: 7 } }, /spec\.rbd/],
  ])("%j is refused", (spec, message) => {
    const converted = convertedVolume({ metadata: { name: "p" }, spec: spec as object }, { newName: "n" });
    expect("failure" in converted ? converted.failure : "").toMatch(message);
  });
});

describe("a claim", () => {
  const claim: PersistentVolumeClaim = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      namespace: "shop",
      name: "data",
      uid: "u",
      resourceVersion: "3",
      labels: { app: "web" },
      annotations: {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs",
        "volume.beta.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs",
        "volume.kubernetes.io/selected-node": "n1",
        "example.com/note": "kept",
      },
      finalizers: ["kubernetes.io/pvc-protection", "example.com/keep"],
      ownerReferences: [{ apiVersion: "example.com/v1", kind: "Shop", name: "s", uid: "u-2" }],
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "5Gi" } },
      storageClassName: "fast",
      volumeMode: "Filesystem",
      volumeName: "pv-a",
    },
    status: { phase: "Bound" },
  };
  const of = (changed: PersistentVolumeClaim, volume?: PersistentVolume) => {
    const converted = convertedClaim(changed, "pv-a-csi", volume);
    if ("failure" in converted) throw new Error(converted.failure);
    return converted;
  };

  test("keeps what is its user's and loses what controllers wrote", () => {
    const { object, differences } = of(claim);
    expect(object).toEqual({
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: {
        namespace: "shop",
        name: "data",
        labels: { app: "web" },
        annotations: { "example.com/note": "kept" },
        finalizers: ["example.com/keep"],
        ownerReferences: claim.metadata?.ownerReferences,
      },
      spec: { ...claim.spec, volumeName: "pv-a-csi" },
    });
    expect(differences.filter(({ why }) => why === undefined)).toEqual([]);
    expect(differences).toHaveLength(7);
  });

  test("asks for no mode that the new volume lacks", () => {
    const pv: PersistentVolume = {
      metadata: { name: "pv-g" },
      spec: {
        accessModes: ["ReadWriteMany"],
        capacity: { storage: "5Gi" },
        gcePersistentDisk: { pdName: "d" },
      },
    };
    const volume = volumeOf(pv).object;
    expect(volume.spec?.accessModes).toEqual(["ReadWriteOnce"]);
    const shared = { ...claim, spec: { ...claim.spec, accessModes: ["ReadWriteMany"] } };
    expect(of(shared, volume).object.spec?.accessModes).toEqual(["ReadWriteOnce"]);
    expect(of(claim, volume).object.spec?.accessModes).toEqual(["ReadWriteOnce"]);
  });

  test.each([
    [
      { spec: { ...claim.spec, resources: { requests: { storage: "6Gi" } } } },
      /asks for 6Gi and the volume has 5Gi/,
    ],
    [
      { status: { conditions: [{ type: "FileSystemResizePending", status: "True" }] } },
      /FileSystemResizePending: the expansion of the claim is not finished/,
    ],
    [{ metadata: { name: "data" } }, /no namespace/],
  ])("%j is refused", (change, message) => {
    const converted = convertedClaim({ ...claim, ...(change as object) }, "n", volumeOf(ebs).object);
    expect("failure" in converted ? converted.failure : "").toMatch(message);
  });
});

describe("a class", () => {
  test("of every plugin is one of its driver, under the same name", () => {
    const classes = recorded.filter(
      ({ op, error, input }) =>
        op === "translateInTreeStorageClassToCSI" && error === undefined && input.storageClass != null,
    );
    const drivers = new Set<string>();
    for (const { input } of classes) {
      const plugin = allPlugins.find(({ inTreeName }) => inTreeName === input.inTreePluginName);
      if (plugin === undefined || input.storageClass === undefined) continue;
      const before = { ...input.storageClass, metadata: { name: "fast" }, provisioner: plugin.inTreeName };
      const converted = convertedClass(before);
      if ("failure" in converted) continue;
      drivers.add(converted.object.provisioner);
      expect(converted.object.provisioner).toBe(plugin.driverName);
      expect(converted.object.metadata).toEqual({ name: "fast" });
      expect(converted.differences.filter(({ why }) => why === undefined)).toEqual([]);
    }
    expect(drivers.size).toBe(8);
  });

  test("of a driver is refused", () => {
    expect(convertedClass({ provisioner: "ebs.csi.aws.com" })).toEqual({
      failure: 'provisioner: "ebs.csi.aws.com" is no in-tree plugin that a CSI driver takes over',
    });
  });
});
