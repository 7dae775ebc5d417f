/** The migration shim: gates, decisions and spec translation. */
export { gateDependencyWarnings, gatesOfPlugin, volumeGates, withForcedMigration } from "./gates.ts";
export {
  createMigratedPluginManager,
  type MigratedPluginManager,
  SpecTranslationError,
  translateInTreeSpecToCSI,
  withoutCompletedPlugins,
} from "./migrated-plugin-manager.ts";
