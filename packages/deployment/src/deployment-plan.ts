/**
 * Checks what is asked for and fills in what is not: a plan has an answer to every question that rendering asks.
 * Whatever the API server would refuse later is refused here, with the name of the field and the remedy.
 */
import { createHash } from "node:crypto";
import { parseQuantity } from "@longshore/kube";
import { isDns1123Label, isDns1123Subdomain } from "@longshore/storage";
import { type DeployField, DeployOptionError, fieldText } from "./deploy-fields.ts";
import {
  type ClassOptions,
  type ControllerKind,
  controllerKinds,
  type DeployOptions,
  type ResourceAmounts,
  type TolerationOptions,
} from "./deploy-options.ts";
import { checkLabel, checkToleration } from "./option-checks.ts";
import type { AccessNeeds } from "./rules/rule.ts";

/** Sidecars of the controller part, in the order in which they are rendered. */
export const controllerSidecars = [
  "provisioner",
  "attacher",
  "resizer",
  "snapshotter",
  "health-monitor",
] as const;
/** One of {@link controllerSidecars}. */
export type ControllerSidecar = (typeof controllerSidecars)[number];

/** A deployment that can be rendered. */
export interface DeploymentPlan {
  /** What was requested. */
  readonly options: DeployOptions;
  readonly driver: string;
  /** What names of objects begin with: a DNS label of at most 40 characters. */
  readonly base: string;
  readonly namespace: string;
  readonly createNamespace: boolean;
  readonly image: string;
  readonly sidecarImage: string;
  readonly controller: ControllerKind;
  readonly replicas: number;
  readonly leaderElection: boolean;
  /** Sidecars in the pod of the driver's controller; empty: there is no controller part. */
  readonly controllerSidecars: readonly ControllerSidecar[];
  readonly needs: AccessNeeds;
  readonly nodeDeployment: boolean;
  readonly separateSidecars: boolean;
  readonly snapshotController: boolean;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly tolerations: readonly TolerationOptions[];
  readonly secretNamespaces: readonly string[];
  readonly secretsClusterWide: boolean;
  readonly storageClasses: readonly ClassOptions[];
  readonly kubeletDir: string;
  readonly resources: {
    readonly driver: { readonly requests: ResourceAmounts; readonly limits: ResourceAmounts };
    readonly sidecar: { readonly requests: ResourceAmounts; readonly limits: ResourceAmounts };
  };
  /** Minor version of the oldest Kubernetes 1.x that must take the objects. */
  readonly kubernetesMinor: number;
  /** What the user must know. */
  readonly warnings: readonly string[];
}

/** Longshore's own image, when none is named. */
export const defaultSidecarImage = "ghcr.io/longshore/longshore:0.1.0";
/** The newest and the oldest Kubernetes that are known. */
const newestMinor = 36;
const oldestMinor = 20;
/** The most replicas that can be asked for. */
export const replicasMax = 100;
/** Longest base of names: what is appended must leave room in labels that controllers make of them. */
const baseMax = 40;
/** Namespaces that each cluster has: none of them is created. */
export const systemNamespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];

/** Defaults measured: all controller sidecars in one process stay below 120 MiB. */
const resourceDefaults = {
  driver: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "512Mi" } },
  sidecar: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "384Mi" } },
} as const;

/** The plan for what is requested. @throws DeployOptionError when it cannot be */
export function planDeployment(options: DeployOptions): DeploymentPlan {
  checkDriverName(options.name);
  checkImage("image", options.image);
  const sidecarImage = options.sidecarImage ?? defaultSidecarImage;
  checkImage("sidecarImage", sidecarImage);
  const base = baseName(options.name);
  const namespace = options.namespace ?? base;
  checkNamespace("namespace", namespace);
  checkTogether(options);
  const controller = controllerKindOf(options);
  const replicas = replicasOf(options, controller);
  const sidecars = sidecarsOf(options);
  const leaderElection = controller !== "statefulset";
  const secretNamespaces = [...new Set(options.secretNamespaces ?? [])].sort();
  for (const name of secretNamespaces) checkNamespace("secretNamespaces", name);
  checkScheduling(options);
  const storageClasses = options.storageClasses ?? [{ name: base, parameters: {} }];
  checkClasses(storageClasses, options);
  const needs: AccessNeeds = {
    driver: options.name,
    leaderElection,
    topology: options.topology === true,
    attach: options.attach === true,
    snapshot: options.snapshot === true,
    groupSnapshot: options.groupSnapshot === true,
    capacity: options.capacity === true,
    modify: options.modify === true,
    nodeDeployment: options.nodeDeployment === true,
    owners: ownersOf(controller, base, options.nodeDeployment === true),
  };
  return {
    options,
    driver: options.name,
    base,
    namespace,
    createNamespace: options.createNamespace ?? !systemNamespaces.includes(namespace),
    image: options.image,
    sidecarImage,
    controller,
    replicas,
    leaderElection,
    controllerSidecars: sidecars,
    needs,
    nodeDeployment: needs.nodeDeployment,
    separateSidecars: options.separateSidecars === true,
    snapshotController: options.snapshotController === true,
    nodeSelector: options.nodeSelector ?? {},
    tolerations: options.tolerations ?? [],
    secretNamespaces,
    secretsClusterWide: options.secretsClusterWide === true,
    storageClasses,
    kubeletDir: kubeletDirOf(options),
    resources: {
      driver: {
        requests: amounts("driverRequests", options.driverRequests, resourceDefaults.driver.requests),
        limits: amounts("driverLimits", options.driverLimits, resourceDefaults.driver.limits),
      },
      sidecar: {
        requests: amounts("sidecarRequests", options.sidecarRequests, resourceDefaults.sidecar.requests),
        limits: amounts("sidecarLimits", options.sidecarLimits, resourceDefaults.sidecar.limits),
      },
    },
    kubernetesMinor: minorOf(options.kubernetesVersion),
    warnings: warningsOf(options, secretNamespaces),
  };
}

/** What names of the driver's objects begin with. */
export function baseName(driver: string): string {
  const label = driver.toLowerCase().replaceAll(".", "-");
  if (label.length <= baseMax) return label;
  const hash = createHash("sha256").update(driver).digest("hex").slice(0, 8);
  return `${label.slice(0, baseMax - hash.length - 1).replace(/-+$/, "")}-${hash}`;
}

/** The driver's name is a part of socket paths, labels and finalizers. */
export function checkDriverName(name: string): void {
  if (name.length > 63) {
    throw new DeployOptionError("name", `"${name}" has ${name.length} characters: use at most 63`);
  }
  if (!isDns1123Subdomain(name)) {
    throw new DeployOptionError(
      "name",
      `"${name}" is not a DNS name: use lower-case letters, digits, dashes and dots, as in disk.csi.example.com`,
    );
  }
}

/** @throws DeployOptionError unless `image` is an image reference */
export function checkImage(field: DeployField, image: string): void {
  const pattern =
    /^[a-z0-9]+([._-]+[a-z0-9]+)*(:\d+)?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[\w][\w.-]{0,127})?(@sha256:[a-f0-9]{64})?$/;
  if (pattern.test(image)) return;
  throw new DeployOptionError(
    field,
    `"${image}" is not an image reference: use registry.example.com/driver:v1, or a digest`,
  );
}

/** @throws DeployOptionError unless `name` can name a namespace */
export function checkNamespace(field: DeployField, name: string): void {
  if (isDns1123Label(name)) return;
  throw new DeployOptionError(
    field,
    `"${name}" is not a namespace name: use at most 63 lower-case letters, digits and dashes`,
  );
}

function checkTogether(options: DeployOptions): void {
  if (options.groupSnapshot === true && options.snapshot !== true) {
    throw new DeployOptionError(
      "groupSnapshot",
      `needs ${fieldText("snapshot")}: the same sidecar takes both`,
    );
  }
  if (options.nodeDeployment === true && options.topology !== true) {
    throw new DeployOptionError(
      "nodeDeployment",
      `needs ${fieldText("topology")}: without it a volume made on one node would be used on any`,
    );
  }
  if (options.snapshotController === true && options.snapshot !== true) {
    throw new DeployOptionError(
      "snapshotController",
      `needs ${fieldText("snapshot")}: without it nothing uses it`,
    );
  }
  if (options.secretsClusterWide === true && (options.secretNamespaces ?? []).length > 0) {
    throw new DeployOptionError(
      "secretsClusterWide",
      `excludes ${fieldText("secretNamespaces")}: give the namespaces, which is safer, or the whole cluster`,
    );
  }
  if (options.defaultClass === true && options.storageClasses?.length === 0) {
    throw new DeployOptionError(
      "defaultClass",
      `needs a class: leave out ${fieldText("storageClasses", "[]")}`,
    );
  }
  if (options.credentialsSecret !== undefined && !isDns1123Subdomain(options.credentialsSecret)) {
    throw new DeployOptionError("credentialsSecret", `"${options.credentialsSecret}" is not a secret name`);
  }
  for (const name of options.imagePullSecrets ?? []) {
    if (!isDns1123Subdomain(name)) {
      throw new DeployOptionError("imagePullSecrets", `"${name}" is not a secret name`);
    }
  }
}

function controllerKindOf(options: DeployOptions): ControllerKind {
  const kind = options.controller ?? ((options.replicas ?? 1) > 1 ? "deployment" : "statefulset");
  if (controllerKinds.includes(kind)) return kind;
  throw new DeployOptionError("controller", `"${kind}" is not one of ${controllerKinds.join(", ")}`);
}

function replicasOf(options: DeployOptions, kind: ControllerKind): number {
  const replicas = options.replicas ?? 1;
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > replicasMax) {
    throw new DeployOptionError("replicas", `${replicas} is not a whole number from 1 to ${replicasMax}`);
  }
  if (options.replicas === undefined || kind === "deployment") return replicas;
  if (kind === "statefulset" && replicas > 1) {
    throw new DeployOptionError(
      "replicas",
      `a StatefulSet runs one controller, without an election: use ${fieldText("controller", "deployment")}`,
    );
  }
  if (kind === "daemonset") {
    throw new DeployOptionError("replicas", "a DaemonSet has a replica on each node: leave it out");
  }
  return replicas;
}

function sidecarsOf(options: DeployOptions): readonly ControllerSidecar[] {
  const wanted: Readonly<Record<ControllerSidecar, boolean>> = {
    provisioner: options.nodeDeployment !== true,
    attacher: options.attach === true,
    // Both are the resizer's work.
    resizer: options.resize === true || options.modify === true,
    snapshotter: options.snapshot === true,
    "health-monitor": options.healthMonitor === true,
  };
  return controllerSidecars.filter((sidecar) => wanted[sidecar]);
}

/** The workloads above the provisioner's pod. */
function ownersOf(kind: ControllerKind, base: string, onNodes: boolean): AccessNeeds["owners"] {
  if (onNodes || kind === "daemonset") return [{ resource: "daemonsets", name: `${base}-node` }];
  if (kind === "statefulset") return [{ resource: "statefulsets", name: `${base}-controller` }];
  // A ReplicaSet has a name of its own for each template.
  return [{ resource: "replicasets" }, { resource: "deployments", name: `${base}-controller` }];
}

function checkScheduling(options: DeployOptions): void {
  if (options.controller === "daemonset" && Object.keys(options.nodeSelector ?? {}).length > 0) {
    throw new DeployOptionError(
      "nodeSelector",
      "an all-in-one DaemonSet runs on every node that has pods with volumes: leave it out, or use " +
        fieldText("controller", "deployment"),
    );
  }
  for (const [key, value] of Object.entries(options.nodeSelector ?? {})) {
    checkLabel("nodeSelector", key, value);
  }
  for (const toleration of options.tolerations ?? []) checkToleration("tolerations", toleration);
}

function checkClasses(classes: readonly ClassOptions[], options: DeployOptions): void {
  const seen = new Set<string>();
  for (const { name, parameters } of classes) {
    if (!isDns1123Subdomain(name)) {
      throw new DeployOptionError(
        "storageClasses",
        `"${name}" is not a class name: use lower-case letters, digits, dashes and dots`,
      );
    }
    if (seen.has(name))
      throw new DeployOptionError("storageClasses", `"${name}" is given twice: leave one out`);
    seen.add(name);
    for (const [key, value] of Object.entries(parameters)) {
      const isSecretNamespace = /^csi\.storage\.k8s\.io\/.*secret-namespace$/.test(key);
      if (!isSecretNamespace || options.secretsClusterWide === true || value.includes("${")) continue;
      if (options.secretNamespaces?.includes(value)) continue;
      throw new DeployOptionError(
        "storageClasses",
        `"${name}" takes secrets of namespace "${value}", which no component may read: add ${fieldText("secretNamespaces", value)}`,
      );
    }
  }
}

function kubeletDirOf({ kubeletDir = "/var/lib/kubelet", name }: DeployOptions): string {
  const dir = kubeletDir.length > 1 ? kubeletDir.replace(/\/+$/, "") : kubeletDir;
  if (!/^(\/[\w.-]+)+$/.test(dir) || dir.split("/").includes("..")) {
    throw new DeployOptionError(
      "kubeletDir",
      `"${kubeletDir}" is not an absolute path: use e.g. /var/lib/kubelet`,
    );
  }
  const socket = `${dir}/plugins/${name}/csi.sock`;
  // Room in sun_path of a unix socket, less the end mark.
  if (socket.length > 107) {
    throw new DeployOptionError(
      "kubeletDir",
      `the driver's socket ${socket} has ${socket.length} characters, and a socket's path at most 107: use a shorter one`,
    );
  }
  return dir;
}

function amounts(
  field: DeployField,
  given: ResourceAmounts | undefined,
  fallback: ResourceAmounts,
): ResourceAmounts {
  if (given === undefined) return fallback;
  for (const [resource, amount] of Object.entries(given)) {
    if (!["cpu", "memory", "ephemeral-storage"].includes(resource)) {
      throw new DeployOptionError(field, `"${resource}" is not one of cpu, memory, ephemeral-storage`);
    }
    try {
      parseQuantity(amount);
    } catch {
      throw new DeployOptionError(
        field,
        `"${amount}" is not a quantity: use e.g. ${resource}=128Mi or cpu=100m`,
      );
    }
  }
  return given;
}

/** The minor version of the oldest Kubernetes that must take the objects; default the newest that is known. */
export function minorOf(version: string | undefined): number {
  if (version === undefined) return newestMinor;
  const match = /^v?1\.(\d{1,3})(\.\d+)?$/.exec(version);
  const minor = Number(match?.[1]);
  if (match !== null && minor >= oldestMinor) return Math.min(minor, newestMinor);
  throw new DeployOptionError(
    "kubernetesVersion",
    `"${version}" is not 1.${oldestMinor} or newer: use e.g. 1.${oldestMinor}`,
  );
}

function warningsOf(options: DeployOptions, secretNamespaces: readonly string[]): readonly string[] {
  const warnings: string[] = [];
  if (options.secretsClusterWide === true) {
    warnings.push(
      `${fieldText("secretsClusterWide")}: the sidecars may read every secret of the cluster, and who takes over their pod may, ` +
        `too; ${fieldText("secretNamespaces", "NAMESPACE")} limits this to where the driver's secrets are`,
    );
  }
  const templated = (options.storageClasses ?? []).filter(({ parameters }) =>
    Object.entries(parameters).some(
      ([key, value]) => key.endsWith("secret-namespace") && value.includes("${"),
    ),
  );
  if (templated.length > 0 && secretNamespaces.length === 0 && options.secretsClusterWide !== true) {
    const names = templated.map(({ name }) => name).join(", ");
    warnings.push(
      `${fieldText("storageClasses", names)}: which namespace its secrets are in depends on the claim, and none may be read yet: ` +
        `name each with ${fieldText("secretNamespaces")}`,
    );
  }
  return warnings;
}
