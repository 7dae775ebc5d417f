/** The objects of a qualification: claims of the in-tree class, pods that write and read. */
import type { PersistentVolumeClaim, Pod, TypedLocalObjectReference, Volume } from "@longshore/kube";
import { inTreeStorageClass } from "../layout/in-tree-storage-class.ts";

/** The namespace of all of it. */
export const namespace = "default";

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
      storageClassName: inTreeStorageClass.metadata?.name ?? "",
      resources: { requests: { storage } },
      ...(dataSource === undefined ? {} : { dataSource }),
    },
  };
}

/** What a pod is to do with its volume. */
export interface PodWork {
  readonly name: string;
  readonly command: readonly string[];
  /** Everything of the volume but its name. */
  readonly volume: Omit<Volume, "name">;
  /** The zone it must run in; any when left out. */
  readonly zone?: string | undefined;
}

/** A pod with one volume. */
export function podOf({ name, command, volume, zone }: PodWork): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace },
    spec: {
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 1,
      ...(zone === undefined ? {} : { nodeSelector: { "topology.kubernetes.io/zone": zone } }),
      containers: [
        {
          name: "main",
          image: "host",
          command: [...command],
          env: [{ name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
          volumeMounts: [{ name: "data", mountPath: "/data" }],
        },
      ],
      volumes: [{ name: "data", ...volume }],
    },
  };
}

/** The volume of a claim. */
export const claimVolume = (claimName: string): Omit<Volume, "name"> => ({
  persistentVolumeClaim: { claimName },
});
