/** The objects of storage that a local cluster has from the start. Pure. */
import type { CSIDriver, StorageClass } from "@longshore/kube";
import { type ClusterConfig, driverNames, type OwnDriver } from "./cluster-config.ts";
import { clusterPlugin, clusterPlugins } from "./plugins.ts";

/** The CSIDriver of each driver. */
export function csiDriversOf(config: Pick<ClusterConfig, "plugins" | "ownDriver">): readonly CSIDriver[] {
  return driverNames(config).map((name) => ({
    apiVersion: "storage.k8s.io/v1",
    kind: "CSIDriver",
    metadata: { name },
    // Of a driver that is not known: where it publishes nothing, the attacher marks its attachments as attached. There is none
    // where nodes make their volumes themselves.
    spec: clusterPlugins.find((plugin) => plugin.driverName === name)?.csiDriver ?? {
      attachRequired: config.ownDriver?.nodeDeployment !== true,
      podInfoOnMount: false,
    },
  }));
}

/** The classes of the plugins, the first of them the default, and one named after the user's own driver, unless it is a plugin's. */
export function storageClassesOf({
  plugins,
  ownDriver,
}: Pick<ClusterConfig, "plugins" | "ownDriver">): readonly StorageClass[] {
  const classes = plugins
    .flatMap((name) => clusterPlugin(name).classes)
    .map((storageClass, index) => (index === 0 ? asDefault(storageClass) : storageClass));
  const isForeign =
    ownDriver !== undefined && !clusterPlugins.some(({ driverName }) => driverName === ownDriver.name);
  return isForeign ? [...classes, ownClass(ownDriver)] : classes;
}

function asDefault(storageClass: StorageClass): StorageClass {
  const annotations = { "storageclass.kubernetes.io/is-default-class": "true" };
  return { ...storageClass, metadata: { ...storageClass.metadata, annotations } };
}

function ownClass({ name, nodeDeployment }: OwnDriver): StorageClass {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name },
    provisioner: name,
    volumeBindingMode: "WaitForFirstConsumer",
    // There is no resizer where nodes make their volumes themselves.
    allowVolumeExpansion: nodeDeployment !== true,
  };
}
