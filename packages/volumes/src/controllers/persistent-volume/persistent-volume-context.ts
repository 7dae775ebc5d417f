/** What the controllers of persistent volumes share. */
import type {
  EventRecorder,
  Informer,
  KubeEnv,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
} from "@longshore/kube";
import type { StorageOperations } from "../../metrics/storage-operations.ts";
import type { AvailableVolumes } from "./available-volumes.ts";
import type { OperationAttempts } from "./operation-attempts.ts";
import type { Provisioners } from "./provisioner-choice.ts";
import type { TakenVolumes } from "./taken-volumes.ts";

/** The caches; their indexes are in `persistent-volume-caches.ts`. */
export interface PersistentVolumeCaches {
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
  readonly classes: Informer<StorageClass>;
  readonly pods: Informer<Pod>;
  readonly available: AvailableVolumes;
}

/** What one controller asks of another: to look at a key, at once or after a time in milliseconds. */
export interface Wakes {
  claim(key: string, afterMs?: number): void;
  /** Makes the volume of a claim, or removes what was made of one that is being deleted. */
  provisioning(claimKey: string): void;
  /** Deletes the disk of a released volume. */
  deletion(volumeName: string): void;
}

/** Shared by the controllers. */
export interface PersistentVolumeContext {
  readonly env: KubeEnv;
  readonly caches: PersistentVolumeCaches;
  readonly provisioners: Provisioners;
  readonly events: EventRecorder;
  readonly wakes: Wakes;
  readonly attempts: OperationAttempts;
  readonly measured: StorageOperations;
  readonly taken: TakenVolumes;
  /** Given to plugins. */
  readonly clusterName: string;
  /** A volume that is to be deleted with its disk stays until the disk is (gate `HonorPVReclaimPolicy`). */
  readonly honorsReclaimPolicy: boolean;
  /** Do what Kubernetes 1.20 is recorded to do where ours differs. */
  readonly compat: boolean;
}
