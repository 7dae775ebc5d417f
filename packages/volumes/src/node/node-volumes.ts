/**
 * The volume side of the node agent: plugin registration, CSINode, migration and volume manager in
 * one component. The kubelet shell owns the Node object, the pods and their containers.
 */
import type { CsiConnector } from "@longshore/csi";
import type { KubeClient, NodeCondition, Pod, Stored } from "@longshore/kube";
import type { Component, FeatureGates, Host, RuntimeEnv } from "@longshore/runtime";
import type { VolumePlugin } from "../framework/plugin.ts";
import type { ContainerRuntime } from "../framework/ports.ts";

/** The seams of the node agent's volume side. */
export type NodeVolumesEnv = RuntimeEnv & {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly connector: CsiConnector;
  readonly runtime: ContainerRuntime;
};

/** How it runs. */
export interface NodeVolumesOptions {
  readonly nodeName: string;
  /** The kubelet root directory. */
  readonly rootDir: string;
  /** This node's gates; which migration they ask for may be held back (see `conditions`). */
  readonly gates: FeatureGates;
  /** The volume plugins of this node, not initialised. */
  readonly plugins: readonly VolumePlugin[];
  /** Called (never re-entrantly) when `status()` may have changed, so that the shell can post it at once. */
  readonly onStatusChanged?: () => void;
}

/** A volume that a container can be started with. */
export interface MountedVolume {
  readonly path: string;
  readonly readOnly: boolean;
}

/** What the shell writes into the Node's status. */
export interface NodeVolumesStatus {
  /** For `status.volumesInUse`; undefined: leave the field as it is. */
  readonly volumesInUse: readonly string[] | undefined;
  /** To be merged into `status.conditions` by type. */
  readonly conditions: readonly NodeCondition[];
  /** Not undefined: the node is not Ready, for this reason. */
  readonly error: string | undefined;
}

/** The volume side of the node agent. */
export interface NodeVolumes extends Component {
  /** Every pod bound to this node, as last known; the first call says that all of them are known. */
  setPods(pods: readonly Stored<Pod>[]): void;
  /**
   * Resolves when all volumes that the pod's containers use are mounted.
   * @throws MountTimeoutError or PodVolumesError saying which volumes are not and why; call again to retry
   */
  waitForAttachAndMount(pod: Stored<Pod>, signal: AbortSignal): Promise<void>;
  /** Volumes of the pod that are certainly mounted, by the names in the pod's spec. */
  mountedVolumes(podUID: string): ReadonlyMap<string, MountedVolume>;
  /** True once nothing of the pod's volumes is mounted or may be mounted on this node. */
  podVolumesGone(podUID: string): boolean;
  status(): NodeVolumesStatus;
  /** `status().volumesInUse`. */
  volumesInUse(): readonly string[] | undefined;
  /** To be called with the list that the Node's status holds, after each successful write or read of it. */
  markReportedInUse(names: readonly string[]): void;
  /** `status().error`. */
  kubeletError(): string | undefined;
  /** `status().conditions`. */
  conditions(): readonly NodeCondition[];
}

/** Starts it; returns at once and works in the background. */
export function startNodeVolumes(_env: NodeVolumesEnv, _options: NodeVolumesOptions): NodeVolumes {
  throw new Error("being built");
}
