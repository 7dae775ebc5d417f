/**
 * The translator: picks the plugin that an object belongs to and lets it translate.
 *
 * Invariants
 *  - Pure: no clock, no log, no state beyond the table of plugins.
 *  - Inputs are never mutated and may be frozen; what a translation leaves alone is the same object in
 *    the output.
 */

import { checkRestored, type DroppedField } from "./check-restored.ts";
import type { InTreePlugin } from "./in-tree-plugin.ts";
import { checkSource, commonFields, requiredText, type SourceFields } from "./source-fields.ts";
import type { Trace, TraceStep } from "./trace.ts";
import { objectLabel, TranslationError } from "./translation-error.ts";
import type { CSIPersistentVolumeSource, PersistentVolume, StorageClass, Volume } from "./types.ts";

/** A translation together with how it came about. */
export interface Explained<T> {
  readonly output: T;
  /** Field by field, in the order in which the fields were written. */
  readonly steps: readonly TraceStep[];
}

/** The same four translations, each with its explanation: the output is what the {@link Translator} returns. */
export interface ExplainingTranslator {
  /** As {@link Translator.translateInTreePVToCSI}. @throws TranslationError */
  translateInTreePVToCSI<T extends PersistentVolume>(pv: T): Explained<T & PersistentVolume>;
  /** As {@link Translator.translateCSIPVToInTree}. @throws TranslationError */
  translateCSIPVToInTree<T extends PersistentVolume>(pv: T): Explained<T & PersistentVolume>;
  /** As {@link Translator.translateInTreeInlineVolumeToCSI}. @throws TranslationError */
  translateInTreeInlineVolumeToCSI(volume: Volume, podNamespace?: string): Explained<PersistentVolume>;
  /** As {@link Translator.translateInTreeStorageClassToCSI}. @throws TranslationError */
  translateInTreeStorageClassToCSI<T extends StorageClass>(
    inTreePluginName: string,
    storageClass: T,
  ): Explained<T & StorageClass>;
}

/** An in-tree volume, how each field came about, and what it does not keep. */
export interface Restored<T> extends Explained<T> {
  readonly dropped: readonly DroppedField[];
}

/**
 * The CSITranslator of the migration design, with what its library gained later. Every call is pure and synchronous. An
 * object that is missing (null or undefined) is an error to the translations, and "no" to the questions. A
 * {@link TranslationError} names object, member and remedy; no other error is thrown for an object of the API's types.
 */
export interface Translator {
  /** The plugins this translator knows, in the order in which they are asked. */
  readonly plugins: readonly InTreePlugin[];
  /**
   * The volume with a `csi` source in place of its in-tree one.
   * @throws TranslationError when there is no migratable source, or one that cannot be expressed
   */
  translateInTreePVToCSI<T extends PersistentVolume>(pv: T | null | undefined): T & PersistentVolume;
  /**
   * The volume with the in-tree source of its driver's plugin in place of the `csi` one.
   * @throws TranslationError when it is no CSI volume, or one of another driver
   */
  translateCSIPVToInTree<T extends PersistentVolume>(pv: T | null | undefined): T & PersistentVolume;
  /**
   * The in-tree form of a CSI volume that stands for the same disk. It differs from
   * {@link translateCSIPVToInTree} where the reference leaves the identity of the disk empty: that is filled from the
   * handle, or is an error.
   * @throws TranslationError also when the disk, its file system, read-only use or a secret would be lost
   */
  restoreInTreePV<T extends PersistentVolume>(pv: T | null | undefined): Restored<T & PersistentVolume>;
  /**
   * Holds the in-tree source of a volume to what the API asks of it.
   * @throws TranslationError naming the member that is missing or of another type
   */
  checkInTreePV(pv: PersistentVolume): void;
  /**
   * The same for one entry of a pod's `spec.volumes`.
   * @throws TranslationError naming the member that is missing or of another type
   */
  checkInlineVolume(volume: Volume): void;
  /**
   * A PersistentVolume around one entry of a pod's `spec.volumes`. `podNamespace` is where the secrets of the source are;
   * only those of Azure files and RBD are translated.
   * @throws TranslationError when there is no migratable source, or one that cannot be expressed
   */
  translateInTreeInlineVolumeToCSI(
    volume: Volume | null | undefined,
    podNamespace?: string,
  ): PersistentVolume;
  /**
   * The class with parameters and topologies as the driver reads them. The provisioner stays, except
   * for Portworx and RBD, where the reference replaces it.
   * @throws TranslationError for an unknown plugin name, or contradictory parameters
   */
  translateInTreeStorageClassToCSI<T extends StorageClass>(
    inTreePluginName: string,
    storageClass: T | null | undefined,
  ): T & StorageClass;
  /** True when this in-tree plugin has a driver to cross to. */
  isMigratableIntreePluginByName(inTreePluginName: string): boolean;
  /** True when this driver takes an in-tree plugin over. */
  isMigratedCSIDriverByName(csiPluginName: string): boolean;
  /**
   * The in-tree plugin that a volume belongs to; `pv` is asked before `volume`.
   * @throws TranslationError when it belongs to none
   */
  getInTreePluginNameFromSpec(
    pv: PersistentVolume | null | undefined,
    volume: Volume | null | undefined,
  ): string;
  /** The driver that takes the plugin over. @throws TranslationError for an unknown plugin name */
  getCSINameFromInTreeName(pluginName: string): string;
  /** The in-tree plugin that the driver takes over. @throws TranslationError for an unknown driver name */
  getInTreeNameFromCSIName(pluginName: string): string;
  /** True when the volume has an in-tree source that can cross. */
  isPVMigratable(pv: PersistentVolume | null | undefined): boolean;
  /** True when the pod's volume has an in-tree source that can cross. */
  isInlineMigratable(volume: Volume | null | undefined): boolean;
  /**
   * A handle made without knowing the volume's project and place, completed from the ID of the node that uses
   * it. Only GCE handles need it; others come back as they are.
   * @throws TranslationError for an unknown driver, or a handle or node ID in no known form
   */
  repairVolumeHandle(driverName: string, volumeHandle: string, nodeID: string): string;
  /** The translations with their explanation: what became what, and why. */
  readonly explain: ExplainingTranslator;
}

/**
 * A translator for these plugins.
 * @throws TranslationError when two of them share a name
 */
export function createTranslator(options: { readonly plugins: readonly InTreePlugin[] }): Translator {
  return new PluginTranslator(options.plugins);
}

const csiFields: SourceFields = {
  driver: requiredText,
  volumeHandle: requiredText,
  ...commonFields,
  volumeAttributes: { type: "object" },
};

class PluginTranslator implements Translator {
  readonly plugins: readonly InTreePlugin[];
  readonly explain: ExplainingTranslator;
  readonly #byInTreeName: ReadonlyMap<string, InTreePlugin>;
  readonly #byDriverName: ReadonlyMap<string, InTreePlugin>;

  constructor(plugins: readonly InTreePlugin[]) {
    this.plugins = [...plugins];
    this.#byInTreeName = new Map(plugins.map((plugin) => [plugin.inTreeName, plugin]));
    this.#byDriverName = new Map(plugins.map((plugin) => [plugin.driverName, plugin]));
    if (this.#byInTreeName.size < plugins.length || this.#byDriverName.size < plugins.length) {
      throw new TranslationError(
        "Translator",
        "plugins",
        "two plugins share a name",
        "give each plugin once",
      );
    }
    this.explain = {
      translateInTreePVToCSI: (pv) => explained((trace) => this.#pvToCSI(pv, trace)),
      translateCSIPVToInTree: (pv) => explained((trace) => this.#pvToInTree(pv, trace)),
      translateInTreeInlineVolumeToCSI: (volume, namespace = "") =>
        explained((trace) => this.#inlineToCSI(volume, namespace, trace)),
      translateInTreeStorageClassToCSI: (name, storageClass) =>
        explained((trace) => this.#classToCSI(name, storageClass, trace)),
    };
  }

  translateInTreePVToCSI<T extends PersistentVolume>(pv: T | null | undefined): T & PersistentVolume {
    return this.#pvToCSI(pv, undefined);
  }

  translateCSIPVToInTree<T extends PersistentVolume>(pv: T | null | undefined): T & PersistentVolume {
    return this.#pvToInTree(pv, undefined);
  }

  restoreInTreePV<T extends PersistentVolume>(pv: T | null | undefined): Restored<T & PersistentVolume> {
    const steps: TraceStep[] = [];
    const csi = pv?.spec?.csi;
    const plugin = this.#byDriverName.get(csi?.driver ?? "");
    if (pv != null && csi != null && plugin !== undefined) {
      // Before the translation, which takes the members to be of the types that the API gives them.
      checkSource(() => objectLabel("PersistentVolume", pv.metadata), "spec.csi", csi, csiFields);
    }
    const trace: Trace = (step) => steps.push(step);
    const translated = this.#pvToInTree(pv, trace);
    // Without a plugin the translation has thrown.
    const known = plugin as InTreePlugin;
    const output = known.completeInTree?.(translated, csi as CSIPersistentVolumeSource, trace) ?? translated;
    const dropped = checkRestored(known, pv as PersistentVolume, output);
    // A field that was completed has two steps: the later one holds.
    const last = new Map(steps.map((step) => [step.to, step]));
    const lasting = steps.filter((step) => step.to === "" || last.get(step.to) === step);
    return { output: output as T & PersistentVolume, steps: lasting, dropped };
  }

  checkInTreePV(pv: PersistentVolume): void {
    const plugin = this.#pluginOf(pv.spec);
    if (plugin === undefined) throw this.#noSource("PersistentVolume", pv.metadata, "spec");
    const label = () => objectLabel("PersistentVolume", pv.metadata);
    checkSource(label, `spec.${plugin.source}`, pv.spec?.[plugin.source], plugin.fields);
  }

  checkInlineVolume(volume: Volume): void {
    const plugin = this.#pluginOf(volume);
    if (plugin === undefined) throw this.#noSource("Volume", volume, "");
    checkSource(() => objectLabel("Volume", volume), plugin.source, volume[plugin.source], plugin.fields);
  }

  translateInTreeInlineVolumeToCSI(volume: Volume | null | undefined, podNamespace = ""): PersistentVolume {
    return this.#inlineToCSI(volume, podNamespace, undefined);
  }

  translateInTreeStorageClassToCSI<T extends StorageClass>(
    inTreePluginName: string,
    storageClass: T | null | undefined,
  ): T & StorageClass {
    return this.#classToCSI(inTreePluginName, storageClass, undefined);
  }

  isMigratableIntreePluginByName(inTreePluginName: string): boolean {
    return this.#byInTreeName.has(inTreePluginName);
  }

  isMigratedCSIDriverByName(csiPluginName: string): boolean {
    return this.#byDriverName.has(csiPluginName);
  }

  getInTreePluginNameFromSpec(
    pv: PersistentVolume | null | undefined,
    volume: Volume | null | undefined,
  ): string {
    if (pv == null && volume == null)
      throw missing("Volume", "neither a PersistentVolume nor a pod's volume was given");
    const plugin = pv != null ? this.#pluginOf(pv.spec) : this.#pluginOf(volume);
    if (plugin !== undefined) return plugin.inTreeName;
    throw pv != null
      ? this.#noSource("PersistentVolume", pv.metadata, "spec")
      : this.#noSource("Volume", volume, "");
  }

  getCSINameFromInTreeName(pluginName: string): string {
    const plugin = this.#byInTreeName.get(pluginName);
    if (plugin === undefined) throw this.#unknownPlugin(pluginName);
    return plugin.driverName;
  }

  getInTreeNameFromCSIName(pluginName: string): string {
    return this.#byDriver(pluginName, "Driver", "name").inTreeName;
  }

  isPVMigratable(pv: PersistentVolume | null | undefined): boolean {
    return this.#pluginOf(pv?.spec) !== undefined;
  }

  isInlineMigratable(volume: Volume | null | undefined): boolean {
    return this.#pluginOf(volume) !== undefined;
  }

  repairVolumeHandle(driverName: string, volumeHandle: string, nodeID: string): string {
    const plugin = this.#byDriver(driverName, "Volume", "driver");
    return plugin.repairVolumeHandle?.(volumeHandle, nodeID) ?? volumeHandle;
  }

  #pvToCSI<T extends PersistentVolume>(
    pv: T | null | undefined,
    trace: Trace | undefined,
  ): T & PersistentVolume {
    if (pv == null) throw missing("PersistentVolume", "no volume was given");
    const plugin = this.#pluginOf(pv.spec);
    if (plugin === undefined) throw this.#noSource("PersistentVolume", pv.metadata, "spec");
    return plugin.pvToCSI(pv, trace) as T & PersistentVolume;
  }

  #pvToInTree<T extends PersistentVolume>(
    pv: T | null | undefined,
    trace: Trace | undefined,
  ): T & PersistentVolume {
    if (pv?.spec?.csi == null)
      throw missing(objectLabel("PersistentVolume", pv?.metadata), "it has no csi source", "spec.csi");
    const driver = pv.spec.csi.driver;
    const plugin = this.#byDriverName.get(driver);
    if (plugin === undefined)
      throw this.#unknownDriver(objectLabel("PersistentVolume", pv.metadata), "spec.csi.driver", driver);
    return plugin.pvToInTree(pv, trace) as T & PersistentVolume;
  }

  #inlineToCSI(
    volume: Volume | null | undefined,
    podNamespace: string,
    trace: Trace | undefined,
  ): PersistentVolume {
    if (volume == null) throw missing("Volume", "no volume was given");
    const plugin = this.#pluginOf(volume);
    if (plugin === undefined) throw this.#noSource("Volume", volume, "");
    return plugin.inlineToCSI(volume, podNamespace, trace);
  }

  #classToCSI<T extends StorageClass>(
    inTreePluginName: string,
    storageClass: T | null | undefined,
    trace: Trace | undefined,
  ): T & StorageClass {
    const plugin = this.#byInTreeName.get(inTreePluginName);
    if (plugin === undefined) throw this.#unknownPlugin(inTreePluginName);
    // Before the check: such a plugin of the reference returns even a missing class.
    if (plugin.classesUnchanged) return storageClass as T & StorageClass;
    if (storageClass == null) throw missing("StorageClass", "no class was given");
    return plugin.storageClassToCSI(storageClass, trace) as T & StorageClass;
  }

  #pluginOf(holder: Volume | PersistentVolume["spec"] | null | undefined): InTreePlugin | undefined {
    if (holder == null) return undefined;
    for (const plugin of this.plugins) if (holder[plugin.source] != null) return plugin;
    return undefined;
  }

  #byDriver(driverName: string, object: string, field: string): InTreePlugin {
    const plugin = this.#byDriverName.get(driverName);
    if (plugin === undefined) throw this.#unknownDriver(object, field, driverName);
    return plugin;
  }

  #unknownDriver(object: string, field: string, driverName: string): TranslationError {
    const known = [...this.#byDriverName.keys()].join(", ");
    const problem = `no in-tree plugin belongs to the driver ${JSON.stringify(driverName)}`;
    return new TranslationError(object, field, problem, `known drivers: ${known}`);
  }

  #unknownPlugin(name: string): TranslationError {
    const known = [...this.#byInTreeName.keys()].join(", ");
    const problem = `no driver is known for the in-tree plugin ${JSON.stringify(name)}`;
    return new TranslationError("Plugin", "name", problem, `known plugins: ${known}`);
  }

  #noSource(
    kind: string,
    metadata: { readonly name?: string | undefined } | null | undefined,
    field: string,
  ): TranslationError {
    const known = this.plugins.map((plugin) => plugin.source).join(", ");
    const object = objectLabel(kind, metadata ?? undefined);
    return new TranslationError(
      object,
      field,
      "it has no source that can be migrated",
      `migratable sources: ${known}`,
    );
  }
}

function missing(object: string, problem: string, field = ""): TranslationError {
  return new TranslationError(object, field, problem, "give one");
}

function explained<T>(translate: (trace: Trace) => T): Explained<T> {
  const steps: TraceStep[] = [];
  const output = translate((step) => steps.push(step));
  return { output, steps };
}
