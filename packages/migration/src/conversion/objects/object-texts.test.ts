/** Templates, inline volumes, owners and the text of a difference. */
import type { KubeObject, PersistentVolume, StatefulSet } from "@longshore/kube";
import { describe, expect, test } from "vitest";
import { convertedTemplates } from "./converted-templates.ts";
import { convertedVolume } from "./converted-volume.ts";
import { inlineVolumes } from "./inline-volumes.ts";
import { diffOfObjects } from "./object-diff.ts";
import { ownersOf } from "./object-owners.ts";

const pv: PersistentVolume = {
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "pv-a" },
  spec: {
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "5Gi" },
    persistentVolumeReclaimPolicy: "Retain",
    awsElasticBlockStore: { volumeID: "vol-1", fsType: "ext4" },
    claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace: "shop", name: "data" },
  },
};

function afterOf(volume: PersistentVolume): PersistentVolume {
  const converted = convertedVolume(volume, { newName: "pv-a-csi" });
  if ("failure" in converted) throw new Error(converted.failure);
  return converted.object;
}

const set: StatefulSet = {
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { namespace: "shop", name: "web", uid: "u", resourceVersion: "1" },
  spec: {
    serviceName: "web",
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "i" }] } },
    volumeClaimTemplates: [
      { metadata: { name: "data" }, spec: { storageClassName: "gp2", accessModes: ["ReadWriteOnce"] } },
      {
        metadata: { name: "old", annotations: { "volume.beta.kubernetes.io/storage-class": "gp2" } },
        spec: {},
      },
      { metadata: { name: "other" }, spec: { storageClassName: "nfs" } },
    ],
  },
};

describe("claim templates", () => {
  const classes = new Map([["gp2", "gp2-csi"]]);

  test("get the converted class, wherever they name it, and the pods' template stays", () => {
    const converted = convertedTemplates(set, classes);
    if ("failure" in converted) throw new Error(converted.failure);
    const { object, differences } = converted;
    expect(object.spec?.volumeClaimTemplates).toEqual([
      { metadata: { name: "data" }, spec: { storageClassName: "gp2-csi", accessModes: ["ReadWriteOnce"] } },
      {
        metadata: { name: "old", annotations: { "volume.beta.kubernetes.io/storage-class": "gp2-csi" } },
        spec: {},
      },
      { metadata: { name: "other" }, spec: { storageClassName: "nfs" } },
    ]);
    expect(object.spec?.template).toBe(set.spec?.template);
    expect(object.metadata).toEqual({ namespace: "shop", name: "web" });
    expect(differences.map(({ field }) => field)).toEqual(["spec.volumeClaimTemplates"]);
  });

  test("get the converted volume and the driver, where they name an in-tree one", () => {
    const metadata = {
      name: "data",
      annotations: { "volume.beta.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs", note: "kept" },
    };
    const volumeClaimTemplates = [{ metadata, spec: { volumeName: "pv-1" } }];
    const named = { ...set, spec: { ...set.spec, volumeClaimTemplates } } as StatefulSet;
    const converted = convertedTemplates(named, new Map(), new Map([["pv-1", "pv-1-csi"]]));
    expect(converted).toMatchObject({
      object: {
        spec: {
          volumeClaimTemplates: [
            {
              metadata: {
                annotations: {
                  "volume.beta.kubernetes.io/storage-provisioner": "ebs.csi.aws.com",
                  note: "kept",
                },
              },
              spec: { volumeName: "pv-1-csi" },
            },
          ],
        },
      },
    });
  });

  test("of no such class, or of a set that takes its claims along, are refused", () => {
    expect(convertedTemplates(set, new Map([["x", "y"]]))).toHaveProperty(
      "failure",
      expect.stringMatching(/none of them names a class/),
    );
    const policy = { whenDeleted: "Delete", whenScaled: "Retain" };
    const taking = {
      ...set,
      spec: { ...set.spec, persistentVolumeClaimRetentionPolicy: policy },
    } as StatefulSet;
    expect(convertedTemplates(taking, classes)).toHaveProperty(
      "failure",
      expect.stringMatching(/whenDeleted: Delete: the claims are deleted with the set/),
    );
  });
});

describe("inline volumes", () => {
  const deployment = (volume: object, replicas = 1) =>
    ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { namespace: "shop", name: "db" },
      spec: { replicas, template: { spec: { volumes: [{ name: "data", ...volume }] } } },
    }) as KubeObject;
  const ebs = { awsElasticBlockStore: { volumeID: "vol-9", fsType: "ext4" } };
  const sizes = { byVolume: new Map([["data", "7Gi"]]) };

  test.each([
    ["ebs.csi.aws.com", ebs],
    ["pd.csi.storage.gke.io", { gcePersistentDisk: { pdName: "d" } }],
    [
      "disk.csi.azure.com",
      {
        azureDisk: {
          diskName: "d",
          diskURI: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
          kind: "Managed",
        },
      },
    ],
    ["file.csi.azure.com", { azureFile: { secretName: "azure-storage-account-a-secret", shareName: "s" } }],
    ["cinder.csi.openstack.org", { cinder: { volumeID: "v" } }],
    ["csi.vsphere.vmware.com", { vsphereVolume: { volumePath: "[ds] a.vmdk" } }],
    ["pxd.portworx.com", { portworxVolume: { volumeID: "v" } }],
    ["rbd.csi.ceph.com", { rbd: { monitors: ["m"], image: "i", pool: "p" } }],
  ])("of %s become a claim on a volume of the same disk", (driver, volume) => {
    const made = inlineVolumes(deployment(volume), sizes);
    if ("failure" in made) throw new Error(made.failure);
    const [claim] = made.claims;
    expect(made.volumes).toHaveLength(1);
    expect(made.volumes[0]?.spec).toMatchObject({
      csi: { driver },
      capacity: { storage: "7Gi" },
      persistentVolumeReclaimPolicy: "Retain",
      claimRef: { namespace: "shop", name: claim?.metadata?.name },
    });
    expect(claim?.spec?.volumeName).toBe(made.volumes[0]?.metadata?.name);
    expect(JSON.stringify(made.object)).toContain(
      `"persistentVolumeClaim":{"claimName":"${claim?.metadata?.name}"`,
    );
    expect(made.differences).toHaveLength(1);
  });

  test.each([
    ["no size", deployment(ebs), { byVolume: new Map<string, string>() }, /does not say how large/],
    ["several pods", deployment(ebs, 3), sizes, /3 replicas would share one claim/],
    ["no in-tree volume", deployment({ emptyDir: {} }), sizes, /none is an in-tree volume/],
    ["no pods", pv as KubeObject, sizes, /has no template of pods/],
  ])("with %s are refused", (_name, object, given, message) => {
    expect(inlineVolumes(object, given)).toHaveProperty("failure", expect.stringMatching(message));
  });
});

describe("owners", () => {
  const marked = (
    labels: Record<string, string>,
    annotations: Record<string, string> = {},
  ): PersistentVolume => ({
    ...pv,
    metadata: { name: "pv-a", labels, annotations },
  });

  test.each([
    [
      "Helm",
      "release shop in namespace prod",
      marked(
        { "app.kubernetes.io/managed-by": "Helm" },
        { "meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "prod" },
      ),
    ],
    ["Helm", "release shop", marked({ heritage: "Tiller", release: "shop" })],
    [
      "Argo CD",
      "application shop",
      marked({}, { "argocd.argoproj.io/tracking-id": "shop:/PersistentVolume:/pv-a" }),
    ],
    ["Argo CD", "application shop", marked({ "argocd.argoproj.io/instance": "shop" })],
    [
      "Flux",
      "Kustomization flux-system/apps",
      marked({
        "kustomize.toolkit.fluxcd.io/name": "apps",
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
      }),
    ],
    [
      "Flux",
      "HelmRelease prod/db",
      marked({ "helm.toolkit.fluxcd.io/name": "db", "helm.toolkit.fluxcd.io/namespace": "prod" }),
    ],
  ])("%s: %s, with the manifest to commit", (kind, name, object) => {
    const [owner, ...more] = ownersOf(object, afterOf(object));
    expect(more).toEqual([]);
    expect(owner).toMatchObject({ kind, name });
    expect(owner?.change).toContain("replace PersistentVolume pv-a by:\n");
    expect(owner?.change).toContain("driver: ebs.csi.aws.com");
  });

  test("an operator of a claim, with the part of the claim that changes", () => {
    const claim = {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: {
        namespace: "shop",
        name: "data",
        ownerReferences: [{ apiVersion: "x/v1", kind: "Database", name: "db", uid: "u", controller: true }],
      },
    };
    const after = {
      ...claim,
      spec: { accessModes: ["ReadWriteOnce"], volumeName: "pv-a-csi", storageClassName: "s" },
    };
    const [owner] = ownersOf(claim, after);
    expect(owner).toMatchObject({ kind: "controller", name: "Database shop/db" });
    expect(owner?.change).toContain("volumeName: pv-a-csi");
    expect(owner?.change).not.toContain("storageClassName");
  });

  test("an object without an owner has none, and labels that others use as well count for nothing", () => {
    expect(ownersOf(marked({ "app.kubernetes.io/instance": "shop", heritage: "us" }), undefined)).toEqual([]);
  });
});

describe("the difference of two objects", () => {
  test("shows what goes and what comes, with lines around", () => {
    expect(diffOfObjects(pv, afterOf(pv))).toBe(
      [
        " apiVersion: v1",
        " kind: PersistentVolume",
        " metadata:",
        "-  name: pv-a",
        "+  name: pv-a-csi",
        " spec:",
        "   accessModes:",
        "   - ReadWriteOnce",
        "   capacity:",
        "     storage: 5Gi",
        "   persistentVolumeReclaimPolicy: Retain",
        "-  awsElasticBlockStore:",
        "-    volumeID: vol-1",
        "-    fsType: ext4",
        "   claimRef:",
        "     apiVersion: v1",
        "     kind: PersistentVolumeClaim",
        "     namespace: shop",
        "     name: data",
        "+  csi:",
        "+    driver: ebs.csi.aws.com",
        "+    volumeHandle: vol-1",
        "+    fsType: ext4",
        "+    volumeAttributes:",
        "+      partition: '0'",
        "",
      ].join("\n"),
    );
  });

  test("of one object with itself is none, and of one that goes all of it", () => {
    expect(diffOfObjects(pv, structuredClone(pv))).toBe("");
    expect(diffOfObjects(pv, { ...pv, metadata: { ...pv.metadata, uid: "u" } })).toBe("");
    expect(diffOfObjects(pv, undefined)).toMatch(/^(-.*\n)+$/);
  });
});
