import { featureGates } from "@longshore/runtime";
import {
  migrationGates,
  translateInTreeInlineVolumeToCSI,
  translateInTreeStorageClassToCSI,
} from "@longshore/translation";
import { cloudProviders, volumeGates } from "@longshore/volumes";
import { describe, expect, it } from "vitest";
import { clusterConfig, controllerDriverNames, driverNames, initialGates } from "./cluster-config.ts";
import { controlPlaneRoles } from "./grant-control-plane.ts";
import { clusterPlugins, inlineVolume, inTreeHandle, pluginsNamed } from "./plugins.ts";
import { csiDriversOf, storageClassesOf } from "./shipped-objects.ts";

describe("the table of plugins", () => {
  it("has every plugin that can cross, with a provider", () => {
    expect(clusterPlugins.map(({ name }) => name)).toEqual([...cloudProviders]);
    expect(clusterPlugins.map(({ gate }) => gate).sort()).toEqual(
      migrationGates.map(({ gate }) => gate).sort(),
    );
  });

  it.each(clusterPlugins)(
    "$name: its classes are in-tree ones, and cross",
    ({ classes, inTreeName, secrets }) => {
      for (const storageClass of classes) {
        expect(storageClass.provisioner).toBe(inTreeName);
        expect(translateInTreeStorageClassToCSI(inTreeName, storageClass)).toBeDefined();
        const named = Object.entries(storageClass.parameters ?? {}).filter(([key]) =>
          key.endsWith("SecretName"),
        );
        expect(secrets.map(({ metadata }) => metadata?.name)).toEqual(
          expect.arrayContaining(named.map(([, name]) => name)),
        );
      }
    },
  );

  it("names classes and drivers differently", () => {
    const plugins = clusterPlugins.map(({ name }) => name);
    const classes = storageClassesOf({ plugins }).map(({ metadata }) => metadata?.name);
    expect(new Set(classes).size).toBe(classes.length);
    expect(driverNames({ plugins })).toHaveLength(clusterPlugins.length);
  });
});

describe("volumes of the table's plugins", () => {
  const secretRef = { name: "s", namespace: "kube-system" };
  it.each([
    ["awsElasticBlockStore", { volumeID: "aws://a/vol-1", fsType: "ext4" }, "aws://a/vol-1"],
    ["azureDisk", { diskName: "d", diskURI: "/subscriptions/d" }, "/subscriptions/d"],
    [
      "azureFile",
      { secretName: "azure-storage-account-a-secret", shareName: "sh", secretNamespace: "x" },
      "sh",
    ],
    ["vsphereVolume", { volumePath: "[ds] d.vmdk", storagePolicyName: "gold" }, "[ds] d.vmdk"],
    ["rbd", { monitors: ["m"], image: "i", secretRef }, "i"],
    ["cinder", { volumeID: "c", secretRef }, "c"],
  ] as const)("%s: handle, and the same volume in a pod", (source, value, handle) => {
    const spec = { [source]: value };
    expect(inTreeHandle(spec)).toBe(handle);
    const plugin = clusterPlugins.find((p) => p.source === source);
    const inline = plugin && inlineVolume(plugin, spec);
    expect(inline).toHaveProperty(source);
    expect(JSON.stringify(inline)).not.toMatch(/storagePolicy|amespace/);
    expect(translateInTreeInlineVolumeToCSI({ name: "v", ...inline }, "default").spec?.csi?.driver).toBe(
      plugin?.driverName,
    );
  });

  it("a volume of another kind has neither", () => {
    const spec = { hostPath: { path: "/data" } };
    expect(inTreeHandle(spec)).toBeUndefined();
    for (const plugin of clusterPlugins) expect(inlineVolume(plugin, spec)).toBeUndefined();
  });
});

describe("naming plugins", () => {
  it("takes short, in-tree and driver names, each plugin once", () => {
    expect(pluginsNamed(["rbd", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "rbd"])).toEqual([
      "rbd",
      "gce-pd",
    ]);
    expect(pluginsNamed(["rbd", "all"])).toEqual(["rbd", ...cloudProviders.filter((name) => name !== "rbd")]);
  });
  it("names the choices to one that is none", () => {
    expect(() => pluginsNamed(["floppy"])).toThrow(
      /"floppy" is not a plugin .*choose one of aws-ebs, .*rbd, all$/,
    );
  });
});

describe("what a cluster has from the start", () => {
  it("has one default class, the first plugin's", () => {
    const isDefault = "storageclass.kubernetes.io/is-default-class";
    const classes = storageClassesOf({ plugins: ["gce-pd", "aws-ebs"] });
    expect(classes.filter(({ metadata }) => metadata?.annotations?.[isDefault] === "true")).toEqual([
      expect.objectContaining({ metadata: expect.objectContaining({ name: "pd-ssd" }) }),
    ]);
  });

  it("has a driver and a class for the user's own driver, unless it is a plugin's", () => {
    const ownDriver = { name: "disk.example.com", command: [] };
    const foreign = clusterConfig(1, "kernel", { ownDriver });
    expect(driverNames(foreign)).toEqual(["ebs.csi.aws.com", "disk.example.com"]);
    expect(csiDriversOf(foreign).map(({ spec }) => spec.attachRequired)).toEqual([true, true]);
    expect(storageClassesOf(foreign).map(({ metadata }) => metadata?.name)).toEqual([
      "gp2",
      "disk.example.com",
    ]);
    const replacing = clusterConfig(1, "kernel", { ownDriver: { name: "ebs.csi.aws.com", command: [] } });
    expect(driverNames(replacing)).toEqual(["ebs.csi.aws.com"]);
    expect(storageClassesOf(replacing)).toHaveLength(1);
  });

  it("has neither attaching nor growing nor a controller for a driver whose volumes each node makes", () => {
    const ownDriver = { name: "dirs.example.com", command: [], nodeDeployment: true } as const;
    const config = clusterConfig(1, "kernel", { ownDriver });
    expect(controllerDriverNames(config)).toEqual(["ebs.csi.aws.com"]);
    expect(driverNames(config)).toEqual(["ebs.csi.aws.com", "dirs.example.com"]);
    expect(csiDriversOf(config).map(({ spec }) => spec.attachRequired)).toEqual([true, false]);
    expect(storageClassesOf(config).map((each) => each.allowVolumeExpansion)).toEqual([true, false]);
  });

  it("has known gates, with migration off", () => {
    const { values } = featureGates(volumeGates, initialGates);
    expect(migrationGates.filter(({ gate }) => values[gate] !== false)).toEqual([]);
  });

  it("lets the controllers read and write secrets only where a plugin needs it", () => {
    const mayRead = (plugins: Parameters<typeof pluginsNamed>[0], without = {}) => {
      const [role] = controlPlaneRoles({ plugins: pluginsNamed(plugins), ...without });
      return JSON.stringify(role).includes('"secrets"');
    };
    expect([mayRead(["aws-ebs", "gce-pd"]), mayRead(["azure-file"]), mayRead(["rbd"])]).toEqual([
      false,
      true,
      true,
    ]);
    expect(mayRead(["azure-file", "rbd"], { withoutInTreePlugins: true })).toBe(false);
  });
});
