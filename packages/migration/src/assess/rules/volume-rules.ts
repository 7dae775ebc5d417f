/** PersistentVolumes of in-tree plugins: whether they can be translated, and what every driver makes of them. */
import type { PersistentVolume, Stored } from "@longshore/kube";
import { AccessModeError, attachAccessMode } from "@longshore/storage";
import { type AssessView, pluginOfVolume, stateOf } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { diskDrivers, readerDrivers, shareDrivers } from "../driver-facts.ts";
import { subjectOf } from "../inventory.ts";

/** Findings about PersistentVolumes. */
export function volumeRules(view: AssessView): RuleFinding[] {
  return view.inventory.volumes.flatMap((pv) => {
    const gates = pluginOfVolume(pv);
    if (gates === undefined) return [];
    const state = stateOf(view, gates);
    if (state === "gone") return [];
    const fault = view.faults.get(pv.metadata.name);
    if (fault !== undefined) {
      const severity = state === "redirected" ? "error" : "warning";
      return [found("LS1201", { object: subjectOf("PersistentVolume", pv), severity, ...fault })];
    }
    const csi = view.translated.get(pv.metadata.name)?.csi;
    if (csi === undefined) return [];
    return [
      ...accessModes(pv, csi, gates.driverName),
      ...features(pv, gates.driverName),
      ...fileSystem(pv, csi, gates.driverName),
    ];
  });
}

function accessModes(pv: Stored<PersistentVolume>, csi: PersistentVolume, driver: string): RuleFinding[] {
  // Those of the translated volume count: the translation of some plugins changes them.
  const modes = csi.spec?.accessModes ?? [];
  const why = refused(modes, csi.spec?.volumeMode === "Block", driver);
  if (why === undefined) return [];
  const object = subjectOf("PersistentVolume", pv);
  return [found("LS1207", { object, field: "spec.accessModes", evidence: why })];
}

/** Why the driver does not take a volume with these modes; undefined when it does. */
function refused(modes: readonly string[], isBlock: boolean, driver: string): string | undefined {
  if (modes.length === 0) return undefined;
  try {
    attachAccessMode(modes, { singleNodeMultiWriter: false });
  } catch (error) {
    if (!(error instanceof AccessModeError)) throw error;
    return `the attacher refuses the modes ${modes.join(", ")} together: CSI has no mode that is both`;
  }
  const all = modes.join(", ");
  if (!diskDrivers.has(driver)) return undefined;
  if (modes.includes("ReadWriteMany")) {
    return isBlock ? undefined : `${driver} does not mount a file system with the modes ${all}`;
  }
  if (!modes.includes("ReadOnlyMany") || readerDrivers.has(driver)) return undefined;
  return `${driver} does not attach a disk to several nodes for reading (${all})`;
}

function features(pv: Stored<PersistentVolume>, driver: string): RuleFinding[] {
  if (pv.spec?.volumeMode !== "Block" || !shareDrivers.has(driver)) return [];
  return [
    found("LS1211", {
      object: subjectOf("PersistentVolume", pv),
      field: "spec.volumeMode",
      evidence: `${driver} serves shares of files, and the volume is a block device`,
    }),
  ];
}

/** In the tree a disk without a type of file system gets ext4, and every component sees that. */
function fileSystem(pv: Stored<PersistentVolume>, csi: PersistentVolume, driver: string): RuleFinding[] {
  if (shareDrivers.has(driver) || pv.spec?.volumeMode === "Block") return [];
  if ((csi.spec?.csi?.fsType ?? "") !== "") return [];
  return [
    found("LS1212", {
      object: subjectOf("PersistentVolume", pv),
      field: "spec.csi.fsType of its CSI form",
      evidence: `it is empty: in the tree it counts as ext4, through CSI ${driver} chooses, and fsGroup may not be applied`,
    }),
  ];
}
