/** Vectors of the translation library: every exported function, with the plugins that the set names. */

import {
  allPlugins,
  corePlugins,
  createTranslator,
  type PersistentVolume,
  type StorageClass,
  type Translator,
  type Volume,
} from "@longshore/translation";
import type { VectorCase, VectorGroup } from "./types.ts";

const core = createTranslator({ plugins: corePlugins });
const withRbd = createTranslator({ plugins: allPlugins });

interface TranslationInput {
  readonly pv: PersistentVolume | null;
  readonly volume: Volume | null;
  readonly podNamespace: string;
  readonly inTreePluginName: string;
  readonly storageClass: StorageClass | null;
  readonly csiPluginName: string;
  readonly pluginName: string;
  readonly driverName: string;
  readonly volumeHandle: string;
  readonly nodeID: string;
}

const on = (call: (translator: Translator, input: TranslationInput) => unknown) => {
  return (input: TranslationInput, vector: VectorCase) => call(vector.set === "rbd" ? withRbd : core, input);
};

export const translationVectors: VectorGroup = {
  name: "translation",
  handlers: {
    translateInTreePVToCSI: on((t, { pv }) => t.translateInTreePVToCSI(pv)),
    translateCSIPVToInTree: on((t, { pv }) => t.translateCSIPVToInTree(pv)),
    translateInTreeInlineVolumeToCSI: on((t, i) => t.translateInTreeInlineVolumeToCSI(i.volume, i.podNamespace)),
    translateInTreeStorageClassToCSI: on((t, i) =>
      t.translateInTreeStorageClassToCSI(i.inTreePluginName, i.storageClass),
    ),
    isMigratableIntreePluginByName: on((t, i) => t.isMigratableIntreePluginByName(i.inTreePluginName)),
    isMigratedCSIDriverByName: on((t, i) => t.isMigratedCSIDriverByName(i.csiPluginName)),
    getInTreePluginNameFromSpec: on((t, i) => t.getInTreePluginNameFromSpec(i.pv, i.volume)),
    getCSINameFromInTreeName: on((t, i) => t.getCSINameFromInTreeName(i.pluginName)),
    getInTreeNameFromCSIName: on((t, i) => t.getInTreeNameFromCSIName(i.pluginName)),
    isPVMigratable: on((t, { pv }) => t.isPVMigratable(pv)),
    isInlineMigratable: on((t, { volume }) => t.isInlineMigratable(volume)),
    repairVolumeHandle: on((t, i) => t.repairVolumeHandle(i.driverName, i.volumeHandle, i.nodeID)),
  },
};
