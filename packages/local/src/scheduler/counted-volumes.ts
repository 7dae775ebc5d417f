/**
 * Volumes as one node will see them: an in-tree volume counts and is placed as CSI on a node whose
 * migrated-plugins annotation lists its plugin, and as in-tree elsewhere.
 * Source: docs/behaviour/controllers.md B7, docs/behaviour/csi-plugin.md 16.
 */
import { keyOf, type PersistentVolume, type Pod, type Volume, type VolumeAttachment } from "@longshore/kube";
import { migratedPluginsAnnotation } from "@longshore/storage";
import {
  getCSINameFromInTreeName,
  getInTreePluginNameFromSpec,
  isInlineMigratable,
  isMigratableIntreePluginByName,
  isPVMigratable,
  translateInTreeInlineVolumeToCSI,
  translateInTreePVToCSI,
} from "@longshore/translation";
import { claimOfPodVolume, classOfClaim } from "@longshore/volumes";
import type { ClusterView } from "./cluster-view.ts";
import { claimOfVolume } from "./pod-claims.ts";

/** A volume that takes one of a node's attachment slots. */
export interface CountedVolume {
  /** The limit it counts against: `csi:<driver>` or the in-tree plugin's name. */
  readonly limit: string;
  /** Its identity within that limit. */
  readonly id: string;
}

/** True when the scheduler and the node agree that the plugin is served by CSI there. */
export function isMigratedOnNode(view: ClusterView, inTreePluginName: string, nodeName: string): boolean {
  const listed = view.csiNode(nodeName)?.metadata.annotations?.[migratedPluginsAnnotation];
  return view.migrates(inTreePluginName) && (listed ?? "").split(",").includes(inTreePluginName);
}

/** The PV as that node will use it: translated where the node has migrated its plugin. */
export function volumeOnNode(view: ClusterView, pv: PersistentVolume, nodeName: string): PersistentVolume {
  if (!isPVMigratable(pv)) return pv;
  const plugin = getInTreePluginNameFromSpec(pv, null);
  return isMigratedOnNode(view, plugin, nodeName) ? (translateInTreePVToCSI(pv) as PersistentVolume) : pv;
}

/** The pod's volumes that take attachment slots on that node; a claim without a volume yet by who will make it. */
export function countedVolumes(view: ClusterView, pod: Pod, nodeName: string): CountedVolume[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    const source = sourceOf(view, pod, volume);
    if (source === undefined) return [];
    const counted = countedOrUnknown(view, source, nodeName);
    return counted === undefined ? [] : [counted];
  });
}

/**
 * What is attached to the node, or may be, by CSI: also volumes whose pods have gone take slots until they are detached.
 * Source: docs/behaviour/csi-plugin.md 16.
 */
export function countedAttachments(view: ClusterView, nodeName: string): CountedVolume[] {
  return view.attachmentsOn(nodeName).map(({ metadata, spec: { attacher, source } }) => ({
    limit: `csi:${attacher}`,
    id: handleOf(view, source) ?? `VolumeAttachment ${metadata.name}`,
  }));
}

function handleOf(view: ClusterView, source: VolumeAttachment["spec"]["source"]): string | undefined {
  const { persistentVolumeName, inlineVolumeSpec } = source;
  if (persistentVolumeName == null) return inlineVolumeSpec?.csi?.volumeHandle;
  const pv = view.volume(persistentVolumeName);
  if (pv === undefined || !isPVMigratable(pv)) return pv?.spec?.csi?.volumeHandle;
  try {
    return (translateInTreePVToCSI(pv) as PersistentVolume).spec?.csi?.volumeHandle;
  } catch {
    return undefined;
  }
}

type MadeSource = { readonly pv: PersistentVolume } | { readonly inline: Volume };
type Source =
  | MadeSource
  /** A claim whose volume is yet to be made. */
  | { readonly provisioner: string; readonly claimKey: string };

function sourceOf(view: ClusterView, pod: Pod, volume: Volume): Source | undefined {
  if (claimOfPodVolume(pod, volume) === undefined) {
    return isInlineMigratable(volume) ? { inline: volume } : undefined;
  }
  const claim = claimOfVolume(view, pod, volume);
  if (claim === undefined) return undefined;
  const pv = claim.spec?.volumeName === undefined ? undefined : view.volume(claim.spec.volumeName);
  if (pv !== undefined) return { pv };
  const provisioner = view.storageClass(classOfClaim(claim))?.provisioner;
  return provisioner === undefined ? undefined : { provisioner, claimKey: keyOf(claim) };
}

/** A local volume takes no slot; any other provisioner than those in-tree is a driver. */
function countUnmade(
  view: ClusterView,
  provisioner: string,
  claimKey: string,
  nodeName: string,
): CountedVolume | undefined {
  const id = `claim ${claimKey}`;
  if (!isMigratableIntreePluginByName(provisioner)) {
    return provisioner.startsWith("kubernetes.io/") ? undefined : { limit: `csi:${provisioner}`, id };
  }
  const isMigrated = isMigratedOnNode(view, provisioner, nodeName);
  return { limit: isMigrated ? `csi:${getCSINameFromInTreeName(provisioner)}` : provisioner, id };
}

/** A volume that cannot be translated takes a slot nevertheless, and keeps no other pod off the node. */
function countedOrUnknown(view: ClusterView, source: Source, nodeName: string): CountedVolume | undefined {
  if ("provisioner" in source) return countUnmade(view, source.provisioner, source.claimKey, nodeName);
  try {
    return countOnNode(view, source, nodeName);
  } catch {
    return "pv" in source
      ? { limit: getInTreePluginNameFromSpec(source.pv, null), id: `PV ${source.pv.metadata?.name}` }
      : { limit: getInTreePluginNameFromSpec(null, source.inline), id: JSON.stringify(source.inline) };
  }
}

function countOnNode(view: ClusterView, source: MadeSource, nodeName: string): CountedVolume | undefined {
  const pv =
    "pv" in source ? volumeOnNode(view, source.pv, nodeName) : inlineOnNode(view, source.inline, nodeName);
  if (pv?.spec?.csi !== undefined) {
    return { limit: `csi:${pv.spec.csi.driver}`, id: pv.spec.csi.volumeHandle };
  }
  if ("pv" in source) {
    if (!isPVMigratable(source.pv)) return undefined;
    const csi = (translateInTreePVToCSI(source.pv) as PersistentVolume).spec?.csi;
    return { limit: getInTreePluginNameFromSpec(source.pv, null), id: csi?.volumeHandle ?? "" };
  }
  const csi = (translateInTreeInlineVolumeToCSI(source.inline, "") as PersistentVolume).spec?.csi;
  return { limit: getInTreePluginNameFromSpec(null, source.inline), id: csi?.volumeHandle ?? "" };
}

function inlineOnNode(view: ClusterView, volume: Volume, nodeName: string): PersistentVolume | undefined {
  const plugin = getInTreePluginNameFromSpec(null, volume);
  if (!isMigratedOnNode(view, plugin, nodeName)) return undefined;
  return translateInTreeInlineVolumeToCSI(volume, "") as PersistentVolume;
}
