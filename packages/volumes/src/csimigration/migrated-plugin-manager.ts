/**
 * Says which volumes are CSI's by the gates, and turns in-tree specs into CSI ones. Injected into
 * every component: each has gates of its own. Source: docs/behaviour/volume-plugins.md 7.2.
 */
import type { PersistentVolume } from "@longshore/kube";
import type { FeatureGates } from "@longshore/runtime";
import {
  getInTreePluginNameFromSpec,
  globalMigrationGate,
  translateInTreeInlineVolumeToCSI,
  translateInTreePVToCSI,
} from "@longshore/translation";
import { specName, type VolumeSpec } from "../framework/volume-spec.ts";
import { gatesOfPlugin, unregisterGateOf } from "./volume-gates.ts";

/** A spec that should be CSI's cannot be translated; the volume stays untouched until it can. */
export class SpecTranslationError extends Error {
  override readonly name = "SpecTranslationError";
}

/**
 * The migration decisions of one component: attach/detach, the PV controllers and the expand controller ask by the gates
 * of the control plane, the volume manager by what is in force on its node (`PathsInForce`). Pure but for the gates,
 * which each call reads. In-tree plugins go by their qualified names, e.g. `kubernetes.io/aws-ebs`.
 */
export interface MigratedPluginManager {
  /** `CSIMigration` and the plugin's own gate. False for unknown names, CSI driver names included. */
  isMigrationEnabledForPlugin(inTreePluginName: string): boolean;
  /** Enabled, and the plugin's in-tree code is off. */
  isMigrationCompleteForPlugin(inTreePluginName: string): boolean;
  /** False where the plugin's in-tree code is off, complete or unregistered. True for what is not an in-tree plugin that can migrate. */
  isInTreePluginRegistered(inTreePluginName: string): boolean;
  /** Whether the gates assign this volume to CSI. A spec whose source is CSI already is never migratable. */
  isMigratable(spec: VolumeSpec): boolean;
  /** The in-tree plugin of the spec if it is one that can migrate, whatever the gates say. */
  inTreePluginOf(spec: VolumeSpec): string | undefined;
  /** The driver that takes over from an in-tree plugin; undefined when there is none. */
  csiNameOf(inTreePluginName: string): string | undefined;
  /** The CSI spec of an in-tree one. @throws SpecTranslationError */
  translateInTreeSpecToCSI(spec: VolumeSpec, podNamespace: string): VolumeSpec;
}

/** The decisions under the given gates, which are read at each call. */
export function createMigratedPluginManager(gates: FeatureGates): MigratedPluginManager {
  const enabled = (name: string): boolean => {
    const own = gatesOfPlugin(name);
    return own !== undefined && gates.enabled(globalMigrationGate) && gates.enabled(own.gate);
  };
  const complete = (name: string): boolean => {
    const own = gatesOfPlugin(name);
    return own !== undefined && enabled(name) && gates.enabled(own.completeGate);
  };
  return {
    isMigrationEnabledForPlugin: enabled,
    isMigrationCompleteForPlugin: complete,
    isInTreePluginRegistered(name) {
      const own = gatesOfPlugin(name);
      return own === undefined || !(complete(name) || gates.enabled(unregisterGateOf(own)));
    },
    isMigratable(spec) {
      const name = inTreePluginOf(spec);
      return name !== undefined && enabled(name);
    },
    inTreePluginOf,
    csiNameOf: (name) => gatesOfPlugin(name)?.driverName,
    translateInTreeSpecToCSI,
  };
}

function inTreePluginOf(spec: VolumeSpec): string | undefined {
  if (spec.persistentVolume?.spec?.csi != null || spec.volume?.csi != null) return undefined;
  try {
    return getInTreePluginNameFromSpec(spec.persistentVolume, spec.volume);
  } catch {
    return undefined; // The library knows no plugin for the source: nothing that could migrate.
  }
}

/** The translation itself; pure. @throws SpecTranslationError */
export function translateInTreeSpecToCSI(spec: VolumeSpec, podNamespace: string): VolumeSpec {
  try {
    if (spec.persistentVolume !== undefined) {
      const translated = translateInTreePVToCSI(spec.persistentVolume) as PersistentVolume;
      return { ...spec, persistentVolume: translated, isMigrated: true };
    }
    if (spec.volume !== undefined) {
      const translated = translateInTreeInlineVolumeToCSI(spec.volume, podNamespace) as PersistentVolume;
      const { readOnly } = spec;
      return {
        persistentVolume: translated,
        readOnly,
        inlineVolumeSpecForCsiMigration: true,
        isMigrated: true,
      };
    }
  } catch (error) {
    throw new SpecTranslationError(`volume "${specName(spec)}" cannot be translated to CSI`, {
      cause: error,
    });
  }
  throw new SpecTranslationError("a volume spec without a source cannot be translated to CSI");
}

/**
 * The plugins without those whose in-tree code is switched off: they are not even initialised.
 * Source: docs/behaviour/volume-plugins.md 7.3.
 */
export function registeredInTreePlugins<P extends { readonly pluginName: string }>(
  plugins: readonly P[],
  migration: Pick<MigratedPluginManager, "isInTreePluginRegistered">,
): readonly P[] {
  return plugins.filter(({ pluginName }) => migration.isInTreePluginRegistered(pluginName));
}
