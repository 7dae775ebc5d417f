/**
 * What a backup of the API server says of nodes that need not hold when it is restored.
 *
 * `status.volumesAttached` names the device of a disk. Since the backup the disk may have been detached, and another one attached as that
 * device: a kubelet that mounts what is listed writes to the wrong disk. So the list is known to be right for no volume that CSI does not
 * attach (a CSI driver finds its volumes itself). They go into the record of volumes that may be attached: what is wanted there is attached once
 * more, which names the device; what is not is detached. Source: docs/decisions/0037-restored-devices.md; docs/contract.md C1.
 */
import type { Node, Stored } from "@longshore/kube";
import { uncertainVolumesOf, uncertainVolumesText } from "./uncertain-volumes.ts";
import { uncertainVolumesAnnotation } from "./well-known.ts";

/** For a restore, by resource: the objects without what need not hold any more. */
export const restoredObjects: Readonly<Record<string, (object: Stored) => Stored>> = {
  nodes: (object) => restoredNode(object as Stored<Node>),
};

const isAttachedByCsi = (uniqueName: string) => uniqueName.startsWith("kubernetes.io/csi/");

function restoredNode(node: Stored<Node>): Stored<Node> {
  const listed = node.status?.volumesAttached ?? [];
  const uncertain = listed.filter(({ name }) => !isAttachedByCsi(name));
  if (uncertain.length === 0) return node;
  const names = new Set([...uncertainVolumesOf(node), ...uncertain.map(({ name }) => name)]);
  const record = { [uncertainVolumesAnnotation]: uncertainVolumesText([...names]) ?? "" };
  return {
    ...node,
    metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, ...record } },
    status: { ...node.status, volumesAttached: listed.filter(({ name }) => isAttachedByCsi(name)) },
  };
}
