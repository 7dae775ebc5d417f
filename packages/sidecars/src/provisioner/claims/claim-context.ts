/** What the passes over claims work with. */
import type {
  EventRecorder,
  Informer,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
} from "@longshore/kube";
import type { SidecarEnv } from "../../common/sidecar-env.ts";
import type { OwnNode } from "../node-deployment.ts";
import type { ProvisionerMetrics } from "../provisioner-metrics.ts";
import type { RequestContext } from "../requests/request-context.ts";
import type { AttemptContext } from "../requests/volume-calls.ts";
import type { ClaimMemory } from "./claim-memory.ts";

/** The seams, caches and settings of the claims' controller. */
export interface ClaimContext extends RequestContext, AttemptContext {
  readonly env: SidecarEnv;
  /** The only node whose claims are served; undefined: all are. */
  readonly ownNode: OwnNode | undefined;
  readonly events: Pick<EventRecorder, "event">;
  readonly metrics: ProvisionerMetrics;
  readonly memory: ClaimMemory;
  /** Indexed as `sourceIndexes` says. */
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get" | "byIndex">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly storageClasses: Pick<Informer<StorageClass>, "get">;
  readonly nodeByName: (name: string) => Node | undefined;
  /** New volumes get a finalizer, so that none goes before its disk. */
  readonly protectVolumes: boolean;
  /** A request that can never succeed is tried again after this time, in milliseconds. */
  readonly infeasibleRetryMs: number;
  /** Called with the class that gained or lost a volume, or ran out of capacity. */
  readonly onCapacityChanged: (storageClassName: string) => void;
}
