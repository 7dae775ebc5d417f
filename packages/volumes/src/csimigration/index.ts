/** The migration shim: gates, decisions and spec translation. */

export { type GateRow, gateTable } from "./gate-table.ts";
export {
  createMigratedPluginManager,
  type MigratedPluginManager,
  registeredInTreePlugins,
  SpecTranslationError,
} from "./migrated-plugin-manager.ts";
export { gateDependencyWarnings, volumeGates, volumeGatesFor } from "./volume-gates.ts";
