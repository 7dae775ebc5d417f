/** What the scheduler sees of the cluster: caches, read by name. */
import type {
  CSINode,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  Stored,
} from "@longshore/kube";

/** A consistent look at the cluster for one decision. */
export interface ClusterView {
  readonly nodes: readonly Stored<Node>[];
  podsOn(nodeName: string): readonly Stored<Pod>[];
  claim(namespace: string, name: string): Stored<PersistentVolumeClaim> | undefined;
  volume(name: string): Stored<PersistentVolume> | undefined;
  storageClass(name: string): Stored<StorageClass> | undefined;
  csiNode(nodeName: string): Stored<CSINode> | undefined;
  /** Whether the scheduler's own gates migrate the in-tree plugin. */
  migrates(inTreePluginName: string): boolean;
}
