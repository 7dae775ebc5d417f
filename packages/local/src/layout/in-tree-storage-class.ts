/** The storage class that a local cluster has from the start. */
import type { StorageClass } from "@longshore/kube";

/** Its name. */
export const inTreeStorageClassName = "gp2";

/** The default storage class of the local cluster: the in-tree EBS plugin, delayed binding. */
export const inTreeStorageClass: StorageClass = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: {
    name: inTreeStorageClassName,
    annotations: { "storageclass.kubernetes.io/is-default-class": "true" },
  },
  provisioner: "kubernetes.io/aws-ebs",
  parameters: { type: "gp2", fsType: "ext4" },
  volumeBindingMode: "WaitForFirstConsumer",
  allowVolumeExpansion: true,
};
