/** The pods beside the writers of a StatefulSet: one with a single volume, which it reads or writes records on. */
import type { Pod, Volume } from "@longshore/kube";

/** The namespace of everything that writes and reads records. */
export const namespace = "default";

/** The name of the volume in such a pod. */
export const volumeName = "data";

/** What a pod is to do with its volume. */
export interface PodWork {
  readonly name: string;
  readonly command: readonly string[];
  /** Everything of the volume but its name. */
  readonly volume: Omit<Volume, "name">;
  /** The zone it must run in; any when left out. */
  readonly zone?: string | undefined;
}

/** A pod with one volume, whose directory is `$(LONGSHORE_MOUNT_DATA)`. It runs once. */
export function volumePod({ name, command, volume, zone }: PodWork): Pod {
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
          volumeMounts: [{ name: volumeName, mountPath: "/data" }],
        },
      ],
      volumes: [{ name: volumeName, ...volume }],
    },
  };
}

/** The volume of a claim. */
export const claimVolume = (claimName: string): Omit<Volume, "name"> => ({
  persistentVolumeClaim: { claimName },
});
