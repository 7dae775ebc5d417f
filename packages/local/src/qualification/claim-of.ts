/** The claims of a qualification: of the in-tree class. */
import type { PersistentVolumeClaim, TypedLocalObjectReference } from "@longshore/kube";
import { inTreeStorageClassName } from "../layout/in-tree-storage-class.ts";
import { namespace } from "../records/volume-pod.ts";

/** A claim of the in-tree class, perhaps for a volume with the contents of another. */
export function claimOf(
  name: string,
  storage: string,
  dataSource?: TypedLocalObjectReference,
): PersistentVolumeClaim {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name, namespace },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: inTreeStorageClassName,
      resources: { requests: { storage } },
      ...(dataSource === undefined ? {} : { dataSource }),
    },
  };
}
