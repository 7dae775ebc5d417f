/** In which form a volume is written, and what it is called in the other: what a view shows of a crossing. */
import type { PersistentVolume } from "@longshore/kube";
import { csiUniqueVolumeName } from "@longshore/storage";
import {
  getCSINameFromInTreeName,
  getInTreePluginNameFromSpec,
  isPVMigratable,
  translateInTreePVToCSI,
} from "@longshore/translation";

/** A volume's form. */
export type VolumeForm =
  /** A volume of an in-tree plugin that can be migrated; `csiHandle` is what its driver calls it, undefined when it cannot be translated. */
  | {
      readonly kind: "in-tree";
      readonly plugin: string;
      readonly driver: string;
      readonly handle: string;
      readonly csiHandle: string | undefined;
    }
  | { readonly kind: "csi"; readonly driver: string; readonly handle: string }
  /** A volume of no plugin that a crossing could move (hostPath, NFS, …). */
  | { readonly kind: "other" };

/** Fields that name the volume in the sources of the in-tree plugins, in the order they are looked for. */
const handleFields = ["volumeID", "pdName", "diskURI", "volumePath", "shareName", "image"] as const;

/** The form of a volume; never throws. */
export function volumeFormOf(pv: PersistentVolume): VolumeForm {
  const csi = pv.spec?.csi;
  if (csi !== undefined) return { kind: "csi", driver: csi.driver, handle: csi.volumeHandle };
  try {
    if (!isPVMigratable(pv)) return { kind: "other" };
    const plugin = getInTreePluginNameFromSpec(pv, null);
    return {
      kind: "in-tree",
      plugin,
      driver: getCSINameFromInTreeName(plugin),
      handle: inTreeHandle(pv),
      csiHandle: csiHandle(pv),
    };
  } catch {
    return { kind: "other" };
  }
}

/** The names that nodes and the attach/detach controller may know the volume by: one for each path. */
export function uniqueNamesOf(form: VolumeForm): readonly string[] {
  if (form.kind === "other") return [];
  if (form.kind === "csi") return [csiUniqueVolumeName(form.driver, form.handle)];
  const inTree = `${form.plugin}/${form.handle}`;
  return form.csiHandle === undefined ? [inTree] : [inTree, csiUniqueVolumeName(form.driver, form.csiHandle)];
}

function csiHandle(pv: PersistentVolume): string | undefined {
  try {
    return translateInTreePVToCSI(pv).spec?.csi?.volumeHandle;
  } catch {
    return undefined; // The preflight says why; a view only shows that there is none.
  }
}

function inTreeHandle(pv: PersistentVolume): string {
  for (const source of Object.values(pv.spec ?? {})) {
    if (typeof source !== "object" || source === null) continue;
    const fields = source as Readonly<Record<string, unknown>>;
    const field = handleFields.find((name) => typeof fields[name] === "string");
    if (field !== undefined) return String(fields[field]);
  }
  return "";
}
