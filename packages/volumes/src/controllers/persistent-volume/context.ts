/** What the parts of the persistent-volume controller share. */
import type {
  EventRecorder,
  Informer,
  KubeEnv,
  KubeObject,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Resource,
  StorageClass,
  Stored,
} from "@longshore/kube";
import type { MigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";
import type { OperationExecutor } from "../../framework/operations.ts";
import type { VolumePluginManager } from "../../framework/plugin-manager.ts";

/** Shared by the parts of one controller. */
export interface PersistentVolumeContext {
  readonly env: KubeEnv;
  /** Do what Kubernetes 1.20 is recorded to do where ours differs. */
  readonly compat: boolean;
  readonly clusterName: string;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
  readonly classes: Informer<StorageClass>;
  readonly pods: Informer<Pod>;
  readonly plugins: VolumePluginManager;
  readonly migration: MigratedPluginManager;
  readonly executor: OperationExecutor;
  readonly events: EventRecorder;
  /** Looks at the claim or volume again soon. */
  enqueueClaim(key: string): void;
  enqueueVolume(name: string): void;
}

/** Index of pods by the claims that they use, `namespace/name`. */
export const podsByClaimIndex = "claim";

/** Writes an object unless nothing changed. @returns the stored object */
export async function save<T extends KubeObject>(
  context: PersistentVolumeContext,
  resource: Resource<T>,
  before: Stored<T>,
  after: T,
  signal: AbortSignal,
): Promise<Stored<T>> {
  if (after === before) return before;
  return context.env.kube.update(resource, after, { signal });
}

/** As {@link save}, for the status. */
export async function saveStatus<T extends KubeObject>(
  context: PersistentVolumeContext,
  resource: Resource<T>,
  before: Stored<T>,
  after: T,
  signal: AbortSignal,
): Promise<Stored<T>> {
  if (after === before) return before;
  return context.env.kube.updateStatus(resource, after, { signal });
}
