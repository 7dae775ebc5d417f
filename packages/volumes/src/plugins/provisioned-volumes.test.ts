/** What classes ask of each in-tree provisioner, what its PersistentVolumes say, and what it refuses. */
import { resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { fakeCredentials } from "../testing/fake-provider-cloud.ts";
import { InTreePluginWorld, type ProvisionRequest } from "../testing/in-tree-plugin-world.ts";

const { signal } = new AbortController();
const generated = "kubernetes-dynamic-pvc-1";
const zone = "topology.kubernetes.io/zone";
const region = "topology.kubernetes.io/region";

interface Made {
  readonly asked: ProvisionRequest;
  /** The source, and what else differs. */
  readonly spec: object;
  readonly disk?: object;
}

const made: readonly (readonly [plugin: string, name: string, made: Made])[] = [
  [
    "gce-pd",
    "by default",
    {
      asked: { parameters: {} },
      spec: {
        gcePersistentDisk: { pdName: generated },
        accessModes: ["ReadWriteOnce", "ReadOnlyMany"],
        capacity: { storage: "2Gi" },
      },
      disk: { type: "pd-standard", sizeBytes: 2n * 1024n ** 3n },
    },
  ],
  [
    "gce-pd",
    "with a type, a zone and a file system",
    {
      asked: { parameters: { Type: "pd-ssd", zone: "us-east-1b", fstype: "xfs" } },
      spec: { gcePersistentDisk: { pdName: generated, fsType: "xfs" } },
      disk: { type: "pd-ssd", zone: "us-east-1b" },
    },
  ],
  [
    "gce-pd",
    "in two zones",
    {
      asked: {
        parameters: { "replication-type": "regional-pd" },
        selectedNode: { name: "node-2", labels: { [zone]: "us-east-1b" } },
      },
      spec: {
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: zone, operator: "In", values: ["us-east-1a", "us-east-1b"] },
                  { key: region, operator: "In", values: ["us-east-1"] },
                ],
              },
            ],
          },
        },
      },
      disk: { zone: "us-east-1b", replicaZones: ["us-east-1a"] },
    },
  ],
  [
    "cinder",
    "in the zone that the class names",
    {
      asked: { parameters: { type: "fast", availability: "nova-2" } },
      spec: { cinder: { volumeID: "00000001-0000-4000-8000-000000000001", fsType: "ext4" } },
      disk: { type: "fast", zone: "nova-2" },
    },
  ],
  [
    "azure-disk",
    "by default",
    {
      asked: {},
      spec: {
        azureDisk: {
          cachingMode: "ReadOnly",
          diskName: generated,
          diskURI: `/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/${generated}`,
          kind: "Managed",
        },
        accessModes: ["ReadWriteOnce"],
      },
      disk: { type: "StandardSSD_LRS" },
    },
  ],
  [
    "azure-disk",
    "with SKU, caching and tags",
    {
      asked: {
        parameters: {
          skuName: "premium_lrs",
          cachingMode: "readwrite",
          kind: "managed",
          fsType: "XFS",
          tags: "team=a, cost = b=c",
          diskIOPSReadWrite: "500",
        },
      },
      spec: { azureDisk: { cachingMode: "ReadWrite", fsType: "xfs" } },
      disk: { type: "Premium_LRS", tags: { team: "a", cost: "b=c", diskiopsreadwrite: "500" } },
    },
  ],
  [
    "vsphere-volume",
    "with datastore and policy",
    {
      asked: { parameters: { diskformat: "zeroedthick", datastore: "ssd", storagePolicyName: "gold" } },
      spec: {
        vsphereVolume: {
          volumePath: `[ssd] kubevols/${generated}.vmdk`,
          fsType: "ext4",
          storagePolicyName: "gold",
        },
        capacity: { storage: "1500Mi" },
      },
      disk: { type: "zeroedthick", zone: "", storagePolicy: "gold" },
    },
  ],
  [
    "rbd",
    "with users and features",
    {
      asked: {
        parameters: {
          ...{ monitors: "a:1, b:2", pool: "kube", userId: "me", userSecretNamespace: "keys" },
          ...{ imageFormat: "2", imageFeatures: "layering", fstype: "xfs" },
        },
      },
      spec: {
        rbd: {
          monitors: ["a:1", "b:2"],
          image: generated,
          pool: "kube",
          user: "me",
          secretRef: { name: "ceph", namespace: "keys" },
          fsType: "xfs",
        },
        accessModes: ["ReadWriteOnce", "ReadOnlyMany"],
        capacity: { storage: "1500Mi" },
      },
      disk: { tags: { pool: "kube", imageformat: "2", imagefeatures: "layering" } },
    },
  ],
  [
    "portworx-volume",
    "named after the PersistentVolume",
    {
      asked: { parameters: { repl: "2", fs: "xfs", io_priority: "high" } },
      spec: {
        portworxVolume: { volumeID: "1001" },
        accessModes: ["ReadWriteOnce", "ReadWriteMany"],
      },
      disk: { name: "pvc-1", zone: "", tags: { repl: "2", io_priority: "high", fs: "xfs" } },
    },
  ],
  [
    "azure-file",
    "with account and group",
    {
      asked: { parameters: { storageAccount: "acc", resourceGroup: "grp", skuName: "premium_lrs" } },
      spec: {
        azureFile: {
          shareName: generated,
          secretName: "azure-storage-account-acc-secret",
          secretNamespace: "default",
        },
        accessModes: ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"],
        capacity: { storage: "2Gi" },
      },
      disk: { id: `grp#acc#${generated}`, type: "Premium_LRS" },
    },
  ],
];

it.each(made)("%s makes volumes %s", async (plugin, _name, { asked, spec, disk = {} }) => {
  const world = await InTreePluginWorld.of(`kubernetes.io/${plugin}`);
  const pv = await world.provision(asked);
  expect(pv.spec).toMatchObject(spec);
  expect([...world.cloud.disks.values()][0]).toMatchObject(disk);
});

it("a volume as a device has no file system in its source", async () => {
  const world = await InTreePluginWorld.of("kubernetes.io/gce-pd");
  const pv = await world.provision({ parameters: { fstype: "xfs" }, claim: { volumeMode: "Block" } });
  expect(pv.spec?.gcePersistentDisk).toEqual({ pdName: generated });
});

it("a regional disk's label names both zones", async () => {
  const world = await InTreePluginWorld.of("kubernetes.io/gce-pd");
  const pv = await world.provision({ parameters: { "replication-type": "Regional-PD" } });
  expect(pv.metadata?.labels).toEqual({ [zone]: "us-east-1a__us-east-1b", [region]: "us-east-1" });
});

const refused: readonly (readonly [plugin: string, asked: ProvisionRequest, message: RegExp])[] = [
  [
    "gce-pd",
    { parameters: { "replication-type": "global" } },
    /replication-type "global" .*none, regional-pd/,
  ],
  ["gce-pd", { parameters: { zone: "a", zones: "b" } }, /both zone and zones .*drop one/],
  ["gce-pd", { parameters: { zones: "a,,b" } }, /a zone has no name/],
  [
    "gce-pd",
    { claim: { accessModes: ["ReadWriteMany"] } },
    /invalid AccessModes ReadWriteMany .*GCE PD supports/,
  ],
  [
    "gce-pd",
    { claim: { selector: {} } },
    /claim.Spec.Selector is not supported for dynamic provisioning on GCE PD/,
  ],
  ["aws-ebs", { claim: { accessModes: ["ReadWriteMany"] } }, /invalid AccessModes ReadWriteMany .*AWS EBS/],
  ["aws-ebs", { claim: { accessModes: ["ReadWriteOncePod"] } }, /invalid AccessModes ReadWriteOncePod/],
  ["aws-ebs", { claim: { selector: {} } }, /claim.Spec.Selector is not supported/],
  ["azure-disk", { parameters: { kind: "Dedicated" } }, /kind "Dedicated" .*use one of Managed/],
  ["azure-disk", { parameters: { cachingMode: "Fast" } }, /cachingMode "Fast" .*ReadOnly, ReadWrite, None/],
  ["azure-disk", { parameters: { skuName: "Slow" } }, /skuName "Slow"/],
  ["azure-disk", { parameters: { zoned: "false", zone: "1" } }, /need zoned: true/],
  ["azure-disk", { parameters: { tags: "novalue" } }, /write key=value/],
  ["azure-disk", { claim: { accessModes: ["ReadOnlyMany"] } }, /invalid AccessModes/],
  ["cinder", { claim: { accessModes: ["ReadWriteMany"] } }, /invalid AccessModes/],
  ["vsphere-volume", { parameters: { diskformat: "fat" } }, /diskformat "fat"/],
  [
    "vsphere-volume",
    { parameters: { storagePolicyName: "gold", diskStripes: "2" } },
    /storagePolicyName and diskstripes .*drop one/,
  ],
  [
    "vsphere-volume",
    { parameters: { storagePolicyName: "platinum" }, claim: { storageClassName: "fast" } },
    /storagePolicyName "platinum" of StorageClass fast: .* use one of gold, silver, or make it there/,
  ],
  ["rbd", { parameters: { monitors: "" } }, /parameter monitors of the StorageClass is missing/],
  ["rbd", { parameters: { monitors: "a,,b" } }, /write addresses with commas/],
  ["rbd", { parameters: { adminSecretName: "" } }, /parameter adminSecretName .* is missing/],
  ["rbd", { parameters: { adminSecretName: "gone" } }, /Secret default\/gone does not exist: create it/],
  ["rbd", { parameters: { imageFormat: "3" } }, /imageFormat "3"/],
  ["rbd", { parameters: { imageFormat: "1", imageFeatures: "layering" } }, /need imageFormat 2/],
  ["rbd", { parameters: { imageFeatures: "journaling" } }, /imageFeatures "journaling"/],
  ["portworx-volume", { parameters: { repl: "4" } }, /repl "4" .*1 to 3 copies/],
  ["portworx-volume", { parameters: { fs: "ntfs" } }, /fs "ntfs"/],
  ["azure-file", { parameters: { skuName: "Slow" } }, /skuName "Slow"/],
  ["azure-file", { claim: { selector: {} } }, /Selector is not supported/],
];

it.each(refused)("%s refuses %j", async (plugin, asked, message) => {
  const world = await InTreePluginWorld.of(`kubernetes.io/${plugin}`);
  await expect(world.provision(asked)).rejects.toThrow(message);
  expect(world.cloud.disks.size).toBe(0);
});

describe("the secret of a share's account", () => {
  const place = { namespace: "default", name: `azure-storage-account-${fakeCredentials.user}-secret` };

  it("is made with the share, and not made again", async () => {
    const world = await InTreePluginWorld.of("kubernetes.io/azure-file");
    await world.provision();
    const secret = await world.kube.get(resources.secrets, place, { signal });
    const text = (key: string) => Buffer.from(secret?.data?.[key] ?? "", "base64").toString();
    expect(secret?.type).toBe("Opaque");
    expect([text("azurestorageaccountname"), text("azurestorageaccountkey")]).toEqual([
      fakeCredentials.user,
      fakeCredentials.key,
    ]);
    await world.provision({ pvName: "pvc-2" });
    const again = await world.kube.get(resources.secrets, place, { signal });
    expect(again?.metadata.resourceVersion).toBe(secret?.metadata.resourceVersion);
  });

  it("goes to the namespace that the class names, which the volume names too", async () => {
    const world = await InTreePluginWorld.of("kubernetes.io/azure-file");
    await world.kube.create(resources.namespaces, { metadata: { name: "keys" } }, { signal });
    const pv = await world.provision({ parameters: { secretNamespace: "keys" } });
    expect(pv.spec?.azureFile?.secretNamespace).toBe("keys");
    expect(pv.metadata?.annotations?.["kubernetes.io/azure-file-resource-group"]).toBe("group");
    expect(
      await world.kube.get(resources.secrets, { ...place, namespace: "keys" }, { signal }),
    ).toBeDefined();
  });

  it("is in no error when it is wrong", async () => {
    const world = await InTreePluginWorld.of("kubernetes.io/azure-file");
    await world.secret(place.name, "Opaque", {
      azurestorageaccountname: fakeCredentials.user,
      azurestorageaccountkey: "not-the-key",
    });
    const spec = await world.provisioned();
    const mounter = await world.node.newMounter(spec, {
      metadata: { name: "p", namespace: "default", uid: "u" },
    });
    const error = await mounter.setUp({}, signal).catch((thrown: unknown) => thrown as Error);
    expect(String(error)).toMatch(/refuses user and key of its secret: correct the secret/);
    expect(JSON.stringify([String(error), String((error as Error).cause)])).not.toContain("not-the-key");
    expect(await world.host.stat("/kubelet/pods/u/volumes/kubernetes.io~azure-file/pvc-1")).toBeUndefined();
  });
});
