/**
 * What the Node of a restored API server says of attached volumes, corrected by what this node has mounted: the other path may have
 * attached them when the backup was made. The controller would detach a disk by the path that the list names, under the mount of the other.
 * Source: docs/playbooks/control-plane-restored-mid-crossing.md; docs/contract.md C1 and C2.
 */
import { type KubeClient, type Node, resources, type Stored } from "@longshore/kube";
import { uncertainVolumesAnnotation, uncertainVolumesOf, uncertainVolumesText } from "@longshore/storage";
import { migrationGates } from "@longshore/translation";
import { inTreeKeysOfCsi } from "../../csimigration/disk-keys.ts";
import { keyOfInTreeName } from "../../csimigration/in-tree-name-key.ts";
import type { MountedDisk } from "../volume-manager/managed-volumes.ts";

type AttachedVolume = NonNullable<NonNullable<Node["status"]>["volumesAttached"]>[number];

/** What the Node should say of attached volumes. */
interface AttachedLists {
  readonly listed: readonly AttachedVolume[];
  /** The record of uncertain volumes. */
  readonly uncertain: readonly string[];
}

/**
 * Corrects the Node's lists. A node mounts only what is attached by the path of the mount, and no disk is attached by two: so what is mounted
 * in-tree is listed, and an in-tree name of a disk that is mounted by CSI goes. Its VolumeAttachment is the controller's to make.
 * @throws KubeApiError of a request; a conflict where the Node has changed meanwhile
 */
export async function correctLists(
  kube: KubeClient,
  nodeName: string,
  mounted: readonly MountedDisk[],
  signal: AbortSignal,
): Promise<void> {
  const node = await kube.get(resources.nodes, { name: nodeName }, { signal });
  const lists = node && correctedLists(node, mounted);
  if (node === undefined || lists === undefined) return;
  const { listed, uncertain } = lists;
  const { resourceVersion } = node.metadata;
  // In a merge patch only null removes a member.
  const annotations = { [uncertainVolumesAnnotation]: uncertainVolumesText(uncertain) ?? null };
  const status = { volumesAttached: listed.length === 0 ? null : listed };
  const body = { metadata: { resourceVersion, annotations }, status };
  const options = { signal, subresource: "status" } as const;
  await kube.patch(resources.nodes, { name: nodeName }, { type: "merge", body }, options);
}

/** The corrected lists; undefined: they are right. Pure. */
export function correctedLists(
  node: Stored<Node>,
  mounted: readonly MountedDisk[],
): AttachedLists | undefined {
  const listed = node.status?.volumesAttached ?? [];
  const uncertain = uncertainVolumesOf(node);
  const byCsi = new Set(mounted.flatMap(({ uniqueName }) => inTreeKeysOfCsi(uniqueName)));
  const isFalse = (name: string) => byCsi.has(keyOfInTreeName(name) ?? "");
  const names = new Set(listed.map(({ name }) => name));
  const missing = mounted.filter(({ uniqueName }) => isOfInTree(uniqueName) && !names.has(uniqueName));
  const isAdded = new Set(missing.map(({ uniqueName }) => uniqueName));
  const isRight = missing.length === 0 && ![...names, ...uncertain].some(isFalse);
  if (isRight) return undefined;
  return {
    listed: [
      ...listed.filter(({ name }) => !isFalse(name)),
      ...missing.map(({ uniqueName, devicePath }) => ({ name: uniqueName, devicePath })),
    ],
    uncertain: uncertain.filter((name) => !isFalse(name) && !isAdded.has(name)),
  };
}

/** Whether it is the name that the in-tree code of a plugin that can migrate has for a disk. */
function isOfInTree(uniqueName: string): boolean {
  return migrationGates.some(({ inTreeName }) => uniqueName.startsWith(`${inTreeName}/`));
}
