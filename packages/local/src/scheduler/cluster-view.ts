/** What the scheduler sees of the cluster: caches, read by name. */
import type {
  CSIDriver,
  CSINode,
  CSIStorageCapacity,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  Stored,
  VolumeAttachment,
} from "@longshore/kube";

/**
 * A consistent look at the cluster for one decision. What is asked for is read at the first call and kept (`observeCluster`),
 * so a decision that reads a few of many nodes stays a pure function of its view: the same view always gives the same answers.
 */
export interface ClusterView {
  readonly nodes: readonly Stored<Node>[];
  podsOn(nodeName: string): readonly Stored<Pod>[];
  claim(namespace: string, name: string): Stored<PersistentVolumeClaim> | undefined;
  volume(name: string): Stored<PersistentVolume> | undefined;
  storageClass(name: string): Stored<StorageClass> | undefined;
  csiNode(nodeName: string): Stored<CSINode> | undefined;
  csiDriver(name: string): Stored<CSIDriver> | undefined;
  /** The VolumeAttachments of the node. */
  attachmentsOn(nodeName: string): readonly Stored<VolumeAttachment>[];
  /** What drivers publish of a class; undefined where the API server has no such objects. */
  capacities(className: string): readonly Stored<CSIStorageCapacity>[] | undefined;
  /** Pods with a node that refer to the claim `namespace/name`, without those that have ended. */
  podsUsing(claimKey: string): readonly Stored<Pod>[];
  /** Volumes of the class that no claim has, the smallest first. */
  availableVolumes(className: string): readonly Stored<PersistentVolume>[];
  /** Volumes whose claimRef names the claim `namespace/name`. */
  volumesNaming(claimKey: string): readonly Stored<PersistentVolume>[];
  /** Whether the scheduler's own gates migrate the in-tree plugin. */
  migrates(inTreePluginName: string): boolean;
}
