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
  /** Whether the scheduler's own gates migrate the in-tree plugin. */
  migrates(inTreePluginName: string): boolean;
}
