/** What the passes over volumes work with. */
import type { EventRecorder, Informer, KubeClient, PersistentVolume } from "@longshore/kube";
import type { SidecarEnv } from "../../common/sidecar-env.ts";
import type { OwnNode } from "../node-deployment.ts";
import type { ProvisionerMetrics } from "../provisioner-metrics.ts";
import type { DeletionContext } from "./volume-deletion.ts";

/** The seams, caches and settings of the volumes' controller. */
export interface VolumeContext extends DeletionContext {
  readonly env: SidecarEnv;
  readonly kube: KubeClient;
  readonly events: Pick<EventRecorder, "event">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly protectVolumes: boolean;
  /** Nodes to which attachments still join the volume. */
  readonly attachedTo: (pvName: string) => readonly string[];
  /** The only node whose volumes are served; undefined: all are. */
  readonly ownNode: OwnNode | undefined;
  readonly metrics: ProvisionerMetrics;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  /** Called with the class that lost a volume. */
  readonly onCapacityChanged: (storageClassName: string) => void;
}
