/**
 * Which way the volumes of each in-tree plugin go on this node right now. The node migration sets it; the volume
 * manager and the plugins' translation read it. Source: docs/behaviour/node-agent.md 2.4.
 */
import type { FeatureGates } from "@longshore/runtime";
import { migrationGates } from "@longshore/translation";
import {
  createMigratedPluginManager,
  type MigratedPluginManager,
} from "../../csimigration/migrated-plugin-manager.ts";
import type { VolumePath, VolumePaths } from "../volume-manager/volume-paths.ts";

/** The ways, and which of them are changing. */
export class PathsInForce implements VolumePaths {
  readonly manager: MigratedPluginManager;
  readonly #paths = new Map<string, VolumePath>();
  readonly #changing = new Set<string>();
  #areDecided = false;

  /** Begins with the ways that the gates want, undecided. */
  constructor(gates: FeatureGates) {
    const wanted = createMigratedPluginManager(gates);
    const pluginOfGate = new Map(migrationGates.map(({ gate, inTreeName }) => [gate as string, inTreeName]));
    for (const { inTreeName } of migrationGates)
      this.#paths.set(inTreeName, wanted.isMigrationEnabledForPlugin(inTreeName) ? "csi" : "in-tree");
    this.manager = createMigratedPluginManager({
      enabled: (name) => {
        // A plugin may be held on CSI after the global gate was switched off: its own way decides.
        if (name === "CSIMigration") return true;
        const plugin = pluginOfGate.get(name);
        return plugin === undefined ? gates.enabled(name) : this.of(plugin) === "csi";
      },
    });
  }

  get areDecided(): boolean {
    return this.#areDecided;
  }

  /** The way that is in force for the plugin; in-tree for one that cannot migrate. */
  of(inTreeName: string): VolumePath {
    return this.#paths.get(inTreeName) ?? "in-tree";
  }

  isDecided(inTreeName: string | undefined): boolean {
    return inTreeName === undefined || !this.#changing.has(inTreeName);
  }

  /** From here on nothing of the plugin is taken on, until `take`. */
  suspend(inTreeName: string): void {
    this.#changing.add(inTreeName);
  }

  /** The way is in force: the CSINode says so. */
  take(inTreeName: string, path: VolumePath): void {
    this.#paths.set(inTreeName, path);
    this.#changing.delete(inTreeName);
  }

  /** The annotation is in place. */
  markDecided(): void {
    this.#areDecided = true;
  }
}
