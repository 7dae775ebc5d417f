/** The migration shim: gates, decisions and spec translation. */

export {
  createMigratedPluginManager,
  type MigratedPluginManager,
  registeredInTreePlugins,
  SpecTranslationError,
} from "./migrated-plugin-manager.ts";
export { gateDependencyWarnings, volumeGates, volumeGatesFor } from "./volume-gates.ts";
