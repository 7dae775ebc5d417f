/** Deployments of every form, for tests of what is rendered. */
import type { DeployOptions } from "@longshore/deployment";

/** The least that can be requested. */
export const minimal: DeployOptions = { name: "disk.csi.example.com", image: "registry.example.com/disk:v1" };
/** All that a driver can do. */
export const everything: DeployOptions = {
  ...minimal,
  attach: true,
  resize: true,
  snapshot: true,
  groupSnapshot: true,
  topology: true,
  capacity: true,
  healthMonitor: true,
  modify: true,
  snapshotController: true,
  secretNamespaces: ["storage-secrets"],
  nodeSelector: { "node-role.kubernetes.io/infra": "" },
  tolerations: [{ key: "node-role.kubernetes.io/infra", operator: "Exists", effect: "NoSchedule" }],
  storageClasses: [
    { name: "fast", parameters: { type: "ssd", "csi.storage.k8s.io/provisioner-secret-name": "key" } },
    { name: "slow", parameters: { iops: "10" } },
  ],
  defaultClass: true,
  podInfo: true,
  ephemeral: true,
  driverArgs: ["--endpoint=$(CSI_ENDPOINT)", "--odd=a: b #c"],
  credentialsSecret: "cloud",
  hostDevices: true,
  imagePullPolicy: "Always",
  imagePullSecrets: ["registry"],
};

/** Deployments of every form. */
export const deployForms: Readonly<Record<string, DeployOptions>> = {
  "the least": minimal,
  "everything, as a StatefulSet": everything,
  "a Deployment of one": { ...everything, controller: "deployment" },
  "a Deployment of three": { ...everything, replicas: 3 },
  "all in one DaemonSet": { ...everything, controller: "daemonset", nodeSelector: {}, tolerations: [] },
  "a container for each sidecar": { ...everything, separateSidecars: true },
  "provisioning on nodes": { ...everything, nodeDeployment: true },
  "nothing but provisioning on nodes": { ...minimal, topology: true, nodeDeployment: true },
  "secrets of the whole cluster": { ...minimal, secretsClusterWide: true },
};
