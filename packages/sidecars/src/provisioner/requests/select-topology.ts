/** Where the volume of a claim may be made (docs/behaviour/sidecars.md 2.3, 2.5). */
import type { PersistentVolumeClaim, StorageClass, Stored } from "@longshore/kube";
import { accessibilityRequirements, TopologyError } from "@longshore/storage";
import { ProvisionError } from "../create-outcome.ts";
import type { RequestContext } from "./request-context.ts";

/** Places for CreateVolume, as the protocol has them; undefined: anywhere. */
export type Places = ReturnType<typeof requirementsOf>;

/**
 * Selects the places, and remembers what was seen of the cluster for the next attempt.
 * @param selectedNode undefined with immediate binding
 * @throws ProvisionError `NoChange`, or `Reschedule` when the node does not exist
 */
export function selectTopology(
  context: RequestContext,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: StorageClass,
  selectedNode: string | undefined,
): Places {
  const hasTopology = context.driver.capabilities.plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS");
  return hasTopology ? requirementsOf(context, claim, storageClass, selectedNode) : undefined;
}

function requirementsOf(
  context: RequestContext,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: StorageClass,
  selectedNode: string | undefined,
) {
  const { uid } = claim.metadata;
  const seen = context.topologies.get(uid);
  // What was seen for another node has the labels of that node (decision 0005, 42).
  const before = seen?.selectedNode === selectedNode ? seen?.memory : undefined;
  const now = before === undefined ? context.topologyNow?.(selectedNode) : undefined;
  const known = before ?? now;
  try {
    const { requirements, memory } = accessibilityRequirements({
      driverName: context.driver.name,
      pvcName: claim.metadata.name,
      allowedTopologies: storageClass.allowedTopologies ?? [],
      selectedNode,
      strictTopology: context.settings.strictTopology,
      immediateTopology: context.settings.immediateTopology,
      // All there is to know of them is in what is seen now.
      csiNodes: now === undefined ? context.csiNodes() : [],
      nodes: now === undefined ? context.nodes() : [],
      ...(known === undefined ? {} : { memory: known }),
    });
    context.topologies.set(uid, { selectedNode, memory });
    if (requirements === undefined) return undefined;
    const { requisite, preferred } = requirements;
    const topologies = (terms: typeof requisite) => terms.map((segments) => ({ segments: { ...segments } }));
    return { requisite: topologies(requisite), preferred: topologies(preferred) };
  } catch (cause) {
    const state = cause instanceof TopologyError && cause.nodeNotFound ? "Reschedule" : "NoChange";
    throw new ProvisionError(state, "error generating accessibility requirements", { cause });
  }
}
