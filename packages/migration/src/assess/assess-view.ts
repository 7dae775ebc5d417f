/** What the rules look at: an inventory, the version that it is judged for, and what follows from both. */
import { isPodTerminal, type PersistentVolume, type Pod, type Stored, type Volume } from "@longshore/kube";
import { migratedPluginsOf } from "@longshore/storage";
import {
  checkInTreePV,
  getInTreePluginNameFromSpec,
  isInlineMigratable,
  isPVMigratable,
  type MigrationGates,
  migrationGates,
  translateInTreeInlineVolumeToCSI,
  translateInTreePVToCSI,
} from "@longshore/translation";
import { isCordonedForCrossing } from "../crossing/cordon.ts";
import type { Inventory } from "./inventory.ts";
import { type PluginState, pluginStateAt } from "./plugin-history.ts";
import { type TranslationFault, translationFault } from "./translation-fault.ts";

/** A volume that a pod on a node uses. */
export interface VolumeUse {
  readonly pod: Stored<Pod>;
  readonly nodeName: string;
  /** The PersistentVolume, or undefined for a volume of the pod's own. */
  readonly pv: Stored<PersistentVolume> | undefined;
  /** e.g. `PersistentVolume pv-1`, or `volume data` of the pod. */
  readonly what: string;
  /** The in-tree plugin; undefined for a volume that is a CSI one in the API. */
  readonly gates: MigrationGates | undefined;
  readonly driver: string;
}

/** A volume in its CSI form. */
export interface TranslatedVolume {
  readonly gates: MigrationGates;
  readonly csi: PersistentVolume;
}

/** What follows from an inventory alone, whatever the version is. */
export interface InventoryFacts {
  readonly inventory: Inventory;
  readonly volumeByName: ReadonlyMap<string, Stored<PersistentVolume>>;
  /** For each driver the nodes where it is registered. */
  readonly registered: ReadonlyMap<string, ReadonlySet<string>>;
  /** For each in-tree plugin the nodes whose annotation lists it. */
  readonly migratedOn: ReadonlyMap<string, ReadonlySet<string>>;
  readonly uses: readonly VolumeUse[];
  /** In-tree volumes in CSI form, by name; those that cannot be translated are not in it. */
  readonly translated: ReadonlyMap<string, TranslatedVolume>;
  /** Why in-tree volumes cannot be translated, by name. */
  readonly faults: ReadonlyMap<string, TranslationFault>;
  /** Plugins of which the cluster has anything: a volume, a pod's own volume or a class. */
  readonly plugins: readonly MigrationGates[];
  /** How much of each the cluster has. */
  readonly amounts: ReadonlyMap<MigrationGates, PluginAmounts>;
}

/** How much of a plugin a cluster has. */
export interface PluginAmounts {
  volumes: number;
  /** Pods with volumes of their own. */
  pods: number;
  classes: number;
}

/** See the file. */
export interface AssessView extends InventoryFacts {
  /** The minor version of Kubernetes 1 that is judged; undefined: not known. */
  readonly minor: number | undefined;
  /** The version that the cluster has, where another one is judged. */
  readonly upgradeFrom?: { readonly minor: number | undefined };
}

const byInTreeName: ReadonlyMap<string, MigrationGates> = new Map(
  migrationGates.map((gates) => [gates.inTreeName, gates]),
);

/** The gates of a plugin; undefined for one that cannot cross. */
export function gatesOf(inTreeName: string | undefined): MigrationGates | undefined {
  return byInTreeName.get(inTreeName ?? "");
}

/** The plugin of an in-tree volume that can cross; undefined for any other. */
export function pluginOfVolume(pv: PersistentVolume): MigrationGates | undefined {
  return isPVMigratable(pv) ? gatesOf(getInTreePluginNameFromSpec(pv, null)) : undefined;
}

/** The same for a volume in a pod's spec. */
export function pluginOfInlineVolume(volume: Volume): MigrationGates | undefined {
  return isInlineMigratable(volume) ? gatesOf(getInTreePluginNameFromSpec(null, volume)) : undefined;
}

/** The facts together with a version. */
export function assessView(inventory: Inventory, minor: number | undefined): AssessView {
  return { ...inventoryFacts(inventory), minor };
}

/** The plugin of each PersistentVolume; undefined for one that cannot cross. */
type PluginOfVolume = ReadonlyMap<Stored<PersistentVolume>, MigrationGates | undefined>;

/** Finds what follows from the inventory, in time proportional to it. */
export function inventoryFacts(inventory: Inventory): InventoryFacts {
  const registered = new Map<string, Set<string>>();
  const migratedOn = new Map<string, Set<string>>();
  for (const csiNode of inventory.csiNodes) {
    const node = csiNode.metadata.name;
    for (const { name } of csiNode.spec?.drivers ?? []) addTo(registered, name, node);
    for (const plugin of migratedPluginsOf(csiNode)) addTo(migratedOn, plugin, node);
  }
  const volumeByName = new Map(inventory.volumes.map((pv) => [pv.metadata.name, pv]));
  const plugins: PluginOfVolume = new Map(inventory.volumes.map((pv) => [pv, pluginOfVolume(pv)]));
  const amounts = amountsOf(inventory, plugins);
  return {
    ...{ inventory, volumeByName, registered, migratedOn },
    uses: usesOf(inventory, volumeByName, plugins),
    ...translatedVolumes(plugins),
    plugins: migrationGates.filter((gates) => amounts.has(gates)),
    amounts,
  };
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function translatedVolumes(plugins: PluginOfVolume): Pick<InventoryFacts, "translated" | "faults"> {
  const translated = new Map<string, TranslatedVolume>();
  const faults = new Map<string, TranslationFault>();
  for (const [pv, gates] of plugins) {
    if (gates === undefined) continue;
    const fault = translationFault(() => {
      checkInTreePV(pv);
      translated.set(pv.metadata.name, { gates, csi: translateInTreePVToCSI(pv) as PersistentVolume });
    });
    if (fault !== undefined) faults.set(pv.metadata.name, fault);
  }
  return { translated, faults };
}

function usesOf(
  { pods, claims }: Inventory,
  volumeByName: ReadonlyMap<string, Stored<PersistentVolume>>,
  plugins: PluginOfVolume,
): VolumeUse[] {
  // By namespace and name: keys made of both would cost more than the rest.
  const volumeOfClaim = new Map<string, Map<string, string | undefined>>();
  for (const { metadata, spec } of claims) {
    const namespace = metadata.namespace ?? "";
    let within = volumeOfClaim.get(namespace);
    if (within === undefined) {
      within = new Map();
      volumeOfClaim.set(namespace, within);
    }
    within.set(metadata.name, spec?.volumeName);
  }
  const uses: VolumeUse[] = [];
  for (const pod of pods) {
    const nodeName = pod.spec?.nodeName;
    if (nodeName === undefined || isPodTerminal(pod)) continue;
    const within = volumeOfClaim.get(pod.metadata.namespace ?? "");
    for (const volume of pod.spec?.volumes ?? []) {
      const own = pluginOfInlineVolume(volume);
      if (own !== undefined) {
        const what = `volume ${volume.name} of Pod ${pod.metadata.namespace}/${pod.metadata.name}`;
        uses.push({ pod, nodeName, pv: undefined, what, gates: own, driver: own.driverName });
        continue;
      }
      const claim = claimNameOf(pod, volume);
      const pv = claim === undefined ? undefined : volumeByName.get(within?.get(claim) ?? "");
      if (pv === undefined) continue;
      const gates = plugins.get(pv);
      const driver = gates?.driverName ?? pv.spec?.csi?.driver;
      if (driver === undefined) continue;
      uses.push({ pod, nodeName, pv, what: `PersistentVolume ${pv.metadata.name}`, gates, driver });
    }
  }
  return uses;
}

/** The claim of a pod's volume; that of a generic ephemeral one is named for the pod (KEP-1698). */
function claimNameOf(pod: Stored<Pod>, volume: Volume): string | undefined {
  if (volume.ephemeral != null) return `${pod.metadata.name}-${volume.name}`;
  return volume.persistentVolumeClaim?.claimName;
}

function amountsOf(
  { pods, classes }: Inventory,
  plugins: PluginOfVolume,
): Map<MigrationGates, PluginAmounts> {
  const amounts = new Map<MigrationGates, PluginAmounts>();
  const count = (gates: MigrationGates | undefined, what: keyof PluginAmounts) => {
    if (gates === undefined) return;
    const of = amounts.get(gates) ?? { volumes: 0, pods: 0, classes: 0 };
    of[what] += 1;
    amounts.set(gates, of);
  };
  for (const gates of plugins.values()) count(gates, "volumes");
  for (const pod of pods) {
    const own = (pod.spec?.volumes ?? []).map(pluginOfInlineVolume).filter((gates) => gates !== undefined);
    for (const gates of own.length > 1 ? new Set(own) : own) count(gates, "pods");
  }
  for (const { provisioner } of classes) count(gatesOf(provisioner), "classes");
  return amounts;
}

/**
 * What becomes of the plugin's volumes at the view's version. A version that is not known is taken for one that redirects
 * every plugin; a node whose annotation lists the plugin shows that its gates were set by hand.
 */
export function stateOf(view: AssessView, { inTreeName }: MigrationGates): PluginState {
  if (view.minor === undefined) return "redirected";
  const state = pluginStateAt(inTreeName, view.minor);
  return state === "in-tree" && view.migratedOn.has(inTreeName) ? "redirected" : state;
}

/** True when the driver is registered on the node. */
export function hasDriver(view: InventoryFacts, driver: string, nodeName: string): boolean {
  return view.registered.get(driver)?.has(nodeName) === true;
}

/** True when pods may be scheduled to the node, now or once its crossing has ended. */
export function mayGetPods(node: Inventory["nodes"][number]): boolean {
  if (isCordonedForCrossing(node)) return true;
  if (node.spec?.unschedulable === true) return false;
  const taints = node.spec?.taints ?? [];
  return !taints.some(({ key, effect }) => controlPlaneTaints.has(key) && effect !== "PreferNoSchedule");
}

const controlPlaneTaints: ReadonlySet<string> = new Set([
  "node-role.kubernetes.io/control-plane",
  "node-role.kubernetes.io/master",
]);

/** A PersistentVolume around a volume in a pod's spec. @throws TranslationError */
export function translatedInline(volume: Volume, namespace: string): PersistentVolume {
  return translateInTreeInlineVolumeToCSI(volume, namespace) as PersistentVolume;
}
