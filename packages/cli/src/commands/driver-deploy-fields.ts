/** The fields of the deployment library as flags of the command, and the library's messages in the command's words. */
import { type DeployField, DeployOptionError, RolloutError, type RolloutField } from "@longshore/deployment";
import { UsageError } from "../exit.ts";
import { inFlags as fieldsInFlags } from "../field-flags.ts";

/** The flag that gives each field. */
export const flagOf = {
  name: "--name",
  image: "--image",
  namespace: "--namespace",
  sidecarImage: "--sidecar-image",
  controller: "--controller",
  replicas: "--replicas",
  attach: "--attach",
  resize: "--resize",
  snapshot: "--snapshot",
  groupSnapshot: "--group-snapshot",
  topology: "--topology",
  capacity: "--capacity",
  healthMonitor: "--health-monitor",
  modify: "--modify",
  nodeDeployment: "--node-deployment",
  separateSidecars: "--separate-sidecars",
  snapshotController: "--snapshot-controller",
  nodeSelector: "--node-selector",
  tolerations: "--tolerations",
  secretNamespaces: "--secret-namespace",
  secretsClusterWide: "--secrets-cluster-wide",
  storageClasses: "--storage-class",
  defaultClass: "--default-class",
  reclaimPolicy: "--reclaim-policy",
  bindingMode: "--binding-mode",
  fsGroupPolicy: "--fs-group-policy",
  podInfo: "--pod-info",
  ephemeral: "--ephemeral",
  driverArgs: "--driver-arg",
  controllerArgs: "--controller-arg",
  nodeArgs: "--node-arg",
  sidecarArgs: "--sidecar-arg",
  credentialsSecret: "--credentials-secret",
  controllerRoot: "--controller-root",
  hostDevices: "--host-devices",
  kubeletDir: "--kubelet-dir",
  imagePullPolicy: "--image-pull-policy",
  imagePullSecrets: "--image-pull-secret",
  driverRequests: "--driver-requests",
  driverLimits: "--driver-limits",
  sidecarRequests: "--sidecar-requests",
  sidecarLimits: "--sidecar-limits",
  kubernetesVersion: "--kubernetes-version",
  // It can only be switched off.
  createNamespace: "--no-create-namespace",
  adopt: "--adopt",
  force: "--force",
} as const satisfies Readonly<Record<DeployField | RolloutField, string>>;

/** A text of the library with the flag in place of each field. */
export function inFlags(text: string): string {
  return fieldsInFlags(text, flagOf);
}

/** An error of the library in the command's words: wrong options are wrong usage. Other errors are returned as they are. */
export function errorInFlags(error: unknown): unknown {
  if (error instanceof DeployOptionError) return new UsageError(inFlags(error.message));
  if (error instanceof RolloutError) return new RolloutError(inFlags(error.message), { cause: error.cause });
  return error;
}
