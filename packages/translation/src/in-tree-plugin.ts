/**
 * What one plugin knows: its names, its topology key and how its objects read on either side. The
 * translator has checked, before it calls, that the source is there.
 */

import type { SourceFields } from "./source-fields.ts";
import type { Trace } from "./trace.ts";
import type {
  CSIPersistentVolumeSource,
  InTreeSourceName,
  PersistentVolume,
  StorageClass,
  Volume,
} from "./types.ts";

/** The translation of one in-tree plugin to its CSI driver and back. Pure. */
export interface InTreePlugin {
  /** Name of the in-tree plugin, such as `kubernetes.io/aws-ebs`. */
  readonly inTreeName: string;
  /** Name of the CSI driver that takes over, such as `ebs.csi.aws.com`. */
  readonly driverName: string;
  /** The member of a PersistentVolume spec or a pod's volume that holds this plugin's source. */
  readonly source: InTreeSourceName;
  /** The members of that source. */
  readonly fields: SourceFields;
  /**
   * The member of the source that the plugin's own name of a volume consists of (GetVolumeName of the in-tree plugin).
   * Absent: the name does not say which disk it is.
   */
  readonly volumeNameField?: string;
  /** The node label that names the zone for this driver; absent when it has none. */
  readonly topologyKey?: string;
  /** Set when classes cross as they are, so that even a missing one does. */
  readonly classesUnchanged?: true;
  /** @throws TranslationError */
  pvToCSI(pv: PersistentVolume, trace: Trace | undefined): PersistentVolume;
  /** @throws TranslationError */
  pvToInTree(pv: PersistentVolume, trace: Trace | undefined): PersistentVolume;
  /**
   * Puts into the in-tree form what the reference's translation leaves out although the CSI volume has it. Absent: the
   * reference leaves nothing out.
   */
  completeInTree?(inTree: PersistentVolume, csi: CSIPersistentVolumeSource, trace: Trace): PersistentVolume;
  /** @throws TranslationError */
  inlineToCSI(volume: Volume, podNamespace: string, trace: Trace | undefined): PersistentVolume;
  /** @throws TranslationError */
  storageClassToCSI(storageClass: StorageClass, trace: Trace | undefined): StorageClass;
  /**
   * Completes a handle that was written before the volume's place was known, from the ID of the node that
   * uses it. Absent: handles are complete.
   * @throws TranslationError
   */
  repairVolumeHandle?(volumeHandle: string, nodeID: string): string;
}
