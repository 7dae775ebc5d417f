/** The claims of a qualification: of the in-tree class. */
import type { PersistentVolumeClaim, TypedLocalObjectReference } from "@longshore/kube";
import { type ClusterPlugin, classNameOf } from "../layout/plugins.ts";
import { namespace } from "../records/volume-pod.ts";

/** A claim of the plugin's class, perhaps for a device, or for a volume with the contents of another. */
export function claimOf(
  plugin: ClusterPlugin,
  name: string,
  storage: string,
  more: { readonly dataSource?: TypedLocalObjectReference; readonly volumeMode?: "Block" } = {},
): PersistentVolumeClaim {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name, namespace },
    spec: {
      accessModes: [plugin.isShared ? "ReadWriteMany" : "ReadWriteOnce"],
      storageClassName: classNameOf(plugin),
      resources: { requests: { storage } },
      ...more,
    },
  };
}
