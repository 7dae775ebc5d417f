/** The migration shim: gates, decisions and spec translation. */

export {
  createMigratedPluginManager,
  type MigratedPluginManager,
  SpecTranslationError,
} from "./migrated-plugin-manager.ts";
export { gateDependencyWarnings, volumeGates } from "./volume-gates.ts";
