/** The options of a deployment. */

/** How the controller part runs (docs/behaviour/sidecars.md 9). */
export const controllerKinds = ["statefulset", "deployment", "daemonset"] as const;
/** One of {@link controllerKinds}. */
export type ControllerKind = (typeof controllerKinds)[number];

/** A StorageClass to make: its name and the parameters that the driver gets. */
export interface ClassOptions {
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** A toleration of pods (core/v1 Toleration, as far as a deployment needs it). */
export interface TolerationOptions {
  readonly key?: string;
  readonly operator?: "Exists" | "Equal";
  readonly value?: string;
  readonly effect?: string;
}

/** Amounts of CPU and memory, by resource name, as quantities. */
export type ResourceAmounts = Readonly<Record<string, string>>;

/**
 * What is requested. Only plain JSON: it is kept with the deployment, so that an upgrade begins with what was
 * requested before.
 */
export interface DeployOptions {
  /** The driver's name, as GetPluginInfo returns it. */
  readonly name: string;
  /** The driver's image. */
  readonly image: string;
  /** Default: the driver's name with dashes for dots. */
  readonly namespace?: string;
  /** Longshore's image; default that of this version. */
  readonly sidecarImage?: string;
  /** Default: `deployment` when replicas are asked for or nodes run it, else `statefulset`. */
  readonly controller?: ControllerKind;
  /** Replicas of the controller; default 1. More than one elect a leader. */
  readonly replicas?: number;
  readonly attach?: boolean;
  readonly resize?: boolean;
  readonly snapshot?: boolean;
  readonly groupSnapshot?: boolean;
  readonly topology?: boolean;
  readonly capacity?: boolean;
  readonly healthMonitor?: boolean;
  readonly modify?: boolean;
  /** Each node provisions its own volumes. */
  readonly nodeDeployment?: boolean;
  /** One container for each sidecar. */
  readonly separateSidecars?: boolean;
  /** The snapshot controller as well, which is one per cluster. */
  readonly snapshotController?: boolean;
  /** The controller runs on nodes with these labels only. */
  readonly nodeSelector?: Readonly<Record<string, string>>;
  /** Taints that the controller tolerates. */
  readonly tolerations?: readonly TolerationOptions[];
  /** Namespaces in which secrets of the driver are. */
  readonly secretNamespaces?: readonly string[];
  /** Secrets of all namespaces may be read. */
  readonly secretsClusterWide?: boolean;
  /** Default: one class with the name of the deployment; an empty list: none. */
  readonly storageClasses?: readonly ClassOptions[];
  /** The first class is the default class. */
  readonly defaultClass?: boolean;
  readonly reclaimPolicy?: "Delete" | "Retain";
  /** Default `WaitForFirstConsumer` with topology, else `Immediate`. */
  readonly bindingMode?: "Immediate" | "WaitForFirstConsumer";
  readonly fsGroupPolicy?: "ReadWriteOnceWithFSType" | "File" | "None";
  /** NodePublishVolume receives information about the pod (`podInfoOnMount`). */
  readonly podInfo?: boolean;
  /** Pods may have volumes of the driver inline. */
  readonly ephemeral?: boolean;
  /** Arguments of the driver, in both parts. */
  readonly driverArgs?: readonly string[];
  /** Further arguments of the driver in the controller part. */
  readonly controllerArgs?: readonly string[];
  /** Further arguments of the driver on nodes. */
  readonly nodeArgs?: readonly string[];
  /** Further arguments of `longshore run sidecars`. */
  readonly sidecarArgs?: readonly string[];
  /** A secret of the namespace, whose keys are environment variables of the driver's controller part. */
  readonly credentialsSecret?: string;
  /** The controller's containers run as root: for a driver that cannot do without. */
  readonly controllerRoot?: boolean;
  /** The driver on nodes sees the machine's devices below /dev. */
  readonly hostDevices?: boolean;
  /** Where the kubelet keeps its things; default `/var/lib/kubelet`. */
  readonly kubeletDir?: string;
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never";
  readonly imagePullSecrets?: readonly string[];
  readonly driverRequests?: ResourceAmounts;
  readonly driverLimits?: ResourceAmounts;
  readonly sidecarRequests?: ResourceAmounts;
  readonly sidecarLimits?: ResourceAmounts;
  /** The oldest Kubernetes that must take the objects, e.g. `1.20`; default the newest. */
  readonly kubernetesVersion?: string;
  /** Whether the namespace is made; default true but for those that every cluster has. */
  readonly createNamespace?: boolean;
}
