/**
 * Whether a driver has room for a new volume where the node can reach it. Pure. Source: docs/behaviour/controllers.md B7;
 * Kubernetes KEP-1472.
 */
import {
  labelSelectorMatches,
  type Node,
  type PersistentVolumeClaim,
  parseQuantity,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import { getCSINameFromInTreeName, isMigratableIntreePluginByName } from "@longshore/translation";
import type { ClusterView } from "./cluster-view.ts";

/** True also where the driver publishes no capacity, or the API server has no such objects. */
export function hasStorageCapacity(
  view: ClusterView,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: Stored<StorageClass>,
  node: Stored<Node>,
): boolean {
  const requested = claim.spec?.resources?.requests?.storage;
  const driver = view.csiDriver(driverOf(view, storageClass.provisioner));
  if (requested === undefined || driver?.spec.storageCapacity !== true) return true;
  const capacities = view.capacities(storageClass.metadata.name);
  if (capacities === undefined) return true;
  const size = parseQuantity(requested);
  return capacities.some(({ capacity, maximumVolumeSize, nodeTopology }) => {
    const limit = maximumVolumeSize ?? capacity;
    // Without a topology it is reachable from no node.
    if (limit === undefined || nodeTopology === undefined) return false;
    return (
      parseQuantity(limit).compare(size) >= 0 &&
      labelSelectorMatches(nodeTopology, node.metadata.labels ?? {})
    );
  });
}

/** The driver that makes volumes of the provisioner's classes. */
function driverOf(view: ClusterView, provisioner: string): string {
  const isMigrated = isMigratableIntreePluginByName(provisioner) && view.migrates(provisioner);
  return isMigrated ? getCSINameFromInTreeName(provisioner) : provisioner;
}
