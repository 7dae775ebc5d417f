import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  allPlugins,
  type CSIPersistentVolumeSource,
  checkInlineVolume,
  checkInTreePV,
  type InTreeSources,
  type PersistentVolume,
  repairVolumeHandle,
  restoreInTreePV,
  TranslationError,
  translateInTreePVToCSI,
} from "./index.ts";

const csiVolume = (csi: CSIPersistentVolumeSource): PersistentVolume => ({
  metadata: { name: "pv" },
  spec: { csi },
});
const errorOf = (action: () => unknown): TranslationError => {
  try {
    action();
  } catch (error) {
    if (error instanceof TranslationError) return error;
    throw error;
  }
  throw new Error("it was accepted");
};

/** A sound source of each plugin. */
const sources: { readonly [plugin: string]: InTreeSources } = {
  "kubernetes.io/aws-ebs": { awsElasticBlockStore: { volumeID: "vol-1" } },
  "kubernetes.io/gce-pd": { gcePersistentDisk: { pdName: "disk" } },
  "kubernetes.io/azure-disk": {
    azureDisk: {
      diskName: "d",
      diskURI: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
      kind: "Managed",
    },
  },
  "kubernetes.io/azure-file": { azureFile: { secretName: "s", shareName: "share", secretNamespace: "ns" } },
  "kubernetes.io/cinder": { cinder: { volumeID: "id" } },
  "kubernetes.io/vsphere-volume": { vsphereVolume: { volumePath: "[ds] dir/disk.vmdk" } },
  "kubernetes.io/portworx-volume": { portworxVolume: { volumeID: "px" } },
  "kubernetes.io/rbd": { rbd: { monitors: ["10.0.0.1:6789"], image: "image", pool: "p" } },
};

const handle = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.constantFrom(
    "vol-0123",
    "aws://us-east-1a/vol-1",
    "projects/p/zones/us-east1-b/disks/d",
    "projects/p/regions/us-east1/disks/d",
    "projects/p/zones/z/disks",
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
    "http://account.blob.core.windows.net/vhds/d.vhd",
    "group#account#share#pv#ns",
    "group#account#share#pv#default",
    "group#account#share#",
    "[ds] dir/disk.vmdk",
    "8e8c4d9a-0000-4000-8000-000000000001",
    "mig_mons-b7f67366bb43f32e07d8a261a7840da9_image-i_70",
    "0001-0009-rook-ceph-0000000000000002-uuid",
  ),
);
const secret = fc.option(
  fc.record({ name: fc.constantFrom("s", "t"), namespace: fc.constantFrom("ns", "x") }),
  {
    nil: undefined,
  },
);
const attributes = fc.dictionary(
  fc.constantFrom(
    "partition",
    "sharename",
    "secretname",
    "imageName",
    "pool",
    "initialvolumefilepath",
    "storagepolicyname",
    "x",
  ),
  fc.constantFrom("1", "share", "[ds] dir/disk.vmdk", "s", "policy"),
);

describe("the way back to in-tree form", () => {
  test.each(allPlugins.map((plugin) => [plugin.inTreeName, plugin] as const))(
    "%s: gives the same handle when it crosses again, or names what would be lost",
    (_name, { driverName, source, fields }) => {
      let restored = 0;
      fc.assert(
        fc.property(
          fc.record({ volumeHandle: handle, readOnly: fc.boolean(), fsType: fc.constantFrom("", "xfs") }),
          attributes,
          secret,
          secret,
          (members, volumeAttributes, nodeStageSecretRef, controllerExpandSecretRef) => {
            const csi = {
              driver: driverName,
              ...members,
              volumeAttributes,
              nodeStageSecretRef,
              controllerExpandSecretRef,
            };
            let output: PersistentVolume;
            try {
              output = restoreInTreePV(csiVolume(csi)).output;
            } catch (error) {
              expect(error).toBeInstanceOf(TranslationError);
              expect((error as TranslationError).field).toMatch(/^spec\.csi\./);
              return;
            }
            restored += 1;
            for (const [member, { required }] of Object.entries(fields)) {
              const value = (output.spec?.[source] as { [member: string]: unknown } | undefined)?.[member];
              if (required) expect(value === "" || value === undefined ? `${member} is empty` : "").toBe("");
            }
            const again = translateInTreePVToCSI(output).spec?.csi as CSIPersistentVolumeSource;
            expect(repairVolumeHandle(driverName, again.volumeHandle, csi.volumeHandle)).toBe(
              csi.volumeHandle,
            );
            for (const field of ["nodeStageSecretRef", "controllerExpandSecretRef"] as const) {
              if (csi[field] !== undefined) expect(again[field]).toEqual(csi[field]);
            }
          },
        ),
        { numRuns: 2000 },
      );
      // The monitors of a Ceph cluster cannot be recovered from their hash.
      if (source === "rbd") expect(restored).toBe(0);
    },
  );

  test.each(Object.entries(sources).filter(([name]) => name !== "kubernetes.io/rbd"))(
    "%s: a volume that was in-tree is so again",
    (_name, source) => {
      const pv: PersistentVolume = { metadata: { name: "pv" }, spec: source };
      const { output } = restoreInTreePV(translateInTreePVToCSI(pv));
      expect(output.spec).toMatchObject(source);
    },
  );

  test("a vSphere path in the handle becomes the path, and its policy comes along", () => {
    const pv = translateInTreePVToCSI({
      spec: { vsphereVolume: { volumePath: "[ds] a.vmdk", storagePolicyName: "gold" } },
    });
    const { output, steps } = restoreInTreePV(pv);
    expect(output.spec).toEqual({ vsphereVolume: { volumePath: "[ds] a.vmdk", storagePolicyName: "gold" } });
    expect(
      steps.filter(({ to }) => to === "spec.vsphereVolume.volumePath").map(({ value }) => value),
    ).toEqual(["[ds] a.vmdk"]);
  });

  test("what a driver adds and in-tree code never reads is named, not refused", () => {
    const { dropped } = restoreInTreePV(
      csiVolume({
        driver: "ebs.csi.aws.com",
        volumeHandle: "vol-1",
        volumeAttributes: { "storage.kubernetes.io/csiProvisionerIdentity": "1-8081-ebs" },
      }),
    );
    expect(dropped).toEqual([
      {
        field: "spec.csi.volumeAttributes[storage.kubernetes.io/csiProvisionerIdentity]",
        text: '"1-8081-ebs" is dropped: awsElasticBlockStore has no room for it',
      },
    ]);
    const gce = restoreInTreePV(
      csiVolume({ driver: "pd.csi.storage.gke.io", volumeHandle: "projects/p/zones/us-east1-b/disks/d" }),
    );
    expect(gce.dropped[0]?.text).toContain("the rest comes from the node");
  });

  test("an attribute is not kept because another member has the same text", () => {
    const volumeAttributes = { encrypted: "true", tier: "xfs", partition: "1" };
    const members = { readOnly: true, fsType: "xfs", volumeAttributes };
    const { dropped } = restoreInTreePV(
      csiVolume({ driver: "ebs.csi.aws.com", volumeHandle: "vol-1", ...members }),
    );
    expect(dropped.map(({ field }) => field)).toEqual([
      "spec.csi.volumeAttributes[encrypted]",
      "spec.csi.volumeAttributes[tier]",
    ]);
    const path = { initialvolumefilepath: "[ds] a.vmdk", cachingMode: "ReadOnly" };
    const vsphere = { driver: "csi.vsphere.vmware.com", volumeHandle: "[ds] a.vmdk", volumeAttributes: path };
    expect(restoreInTreePV(csiVolume(vsphere)).dropped.map(({ field }) => field)).toEqual([
      "spec.csi.volumeAttributes[cachingMode]",
    ]);
  });

  test.each([
    ["csi.vsphere.vmware.com", { volumeHandle: "8e8c" }, "spec.csi.volumeHandle", "vsphereVolume.volumePath"],
    ["rbd.csi.ceph.com", { volumeHandle: "0001-0009" }, "spec.csi.volumeHandle", "rbd.monitors"],
    ["ebs.csi.aws.com", { volumeHandle: "aws://a/vol-1" }, "spec.csi.volumeHandle", "would be lost"],
    ["file.csi.azure.com", { volumeHandle: "g#a#s#", fsType: "ext4" }, "spec.csi.fsType", "would be lost"],
    [
      "cinder.csi.openstack.org",
      { volumeHandle: "v", nodeStageSecretRef: { name: "s" } },
      "spec.csi.nodeStageSecretRef",
      "would be lost",
    ],
    ["ebs.csi.aws.com", {}, "spec.csi.volumeHandle", "is missing"],
    ["ebs.csi.aws.com", { volumeHandle: 7 }, "spec.csi.volumeHandle", "is not a text"],
  ])("%s %j is refused, naming %s", (driver, csi, field, problem) => {
    const error = errorOf(() => restoreInTreePV(csiVolume({ driver, ...csi } as CSIPersistentVolumeSource)));
    expect(error.field).toBe(field);
    expect(error.problem).toContain(problem);
  });
});

describe("the members of an in-tree source", () => {
  test.each(allPlugins.map((plugin) => [plugin.inTreeName, plugin] as const))(
    "%s: each one that is missing, empty or of another type is named",
    (name, { source, fields }) => {
      const sound = sources[name]?.[source] as unknown as { readonly [member: string]: unknown };
      const pv = (value: unknown) =>
        ({ metadata: { name: "pv" }, spec: { [source]: value } }) as PersistentVolume;
      checkInTreePV(pv(sound));
      for (const [member, field] of Object.entries(fields)) {
        const wrong: unknown[] = [field.type === "text" ? 1 : "text"];
        if (field.required) wrong.push(undefined, null, "");
        for (const value of wrong) {
          const error = errorOf(() => checkInTreePV(pv({ ...sound, [member]: value })));
          expect(error.field).toBe(`spec.${source}.${member}`);
          const inline = { name: "v", [source]: { ...sound, [member]: value } };
          expect(errorOf(() => checkInlineVolume(inline)).field).toBe(`${source}.${member}`);
        }
      }
      expect(errorOf(() => checkInTreePV(pv("text"))).field).toBe(`spec.${source}`);
    },
  );
});
