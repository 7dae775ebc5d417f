/** The migration shim: gates, decisions and spec translation. */
export { gateDependencyWarnings, volumeGates } from "./gates.ts";
export {
  createMigratedPluginManager,
  type MigratedPluginManager,
  SpecTranslationError,
} from "./migrated-plugin-manager.ts";
