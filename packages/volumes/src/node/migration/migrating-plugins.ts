/** The plugins of a node that can migrate: which way they are to go, and what is known of those that are held. */
import { migrationGates } from "@longshore/translation";
import type { ManagedVolumes, VolumeChange } from "../volume-manager/managed-volumes.ts";
import type { VolumePath } from "../volume-manager/volume-paths.ts";
import type { ObservedPlugin, PluginVerdict } from "./decide-node-migration-step.ts";
import type { PluginPath } from "./migration-condition.ts";
import type { PathsInForce } from "./paths-in-force.ts";

/** A plugin and what this agent knows of its migration. */
export interface MigratingPlugin {
  readonly inTreeName: string;
  readonly driverName: string;
  /** By the gates. */
  readonly wanted: VolumePath;
  /** Unique names of CSI volumes that this agent has known while the plugin was held. */
  readonly heardOf: Set<string>;
}

/** The plugins, in a fixed order. */
export class MigratingPlugins {
  readonly #paths: PathsInForce;
  readonly #plugins: readonly MigratingPlugin[];
  readonly #heldBy = new Map<string, readonly string[]>();

  /** @param paths still as the gates want them */
  constructor(paths: PathsInForce) {
    this.#paths = paths;
    this.#plugins = migrationGates.map(({ inTreeName, driverName }) => {
      return { inTreeName, driverName, wanted: paths.of(inTreeName), heardOf: new Set() };
    });
  }

  get(inTreeName: string | undefined): MigratingPlugin | undefined {
    return this.#plugins.find((plugin) => plugin.inTreeName === inTreeName);
  }

  /** True when some plugin is not on the way that the gates want. */
  get areHeld(): boolean {
    return this.#plugins.some((plugin) => this.#isHeld(plugin));
  }

  /** Remembers a volume of a plugin that is held: only its name leads to its VolumeAttachment. */
  hear({ uniqueName, origin }: VolumeChange): void {
    const plugin = this.get(origin);
    if (uniqueName !== undefined && plugin !== undefined && this.#isHeld(plugin))
      plugin.heardOf.add(uniqueName);
  }

  /** The plugins as a pass sees them. @param annotated the way by the CSINode; left out: the one in force */
  observe(
    managed: ManagedVolumes | undefined,
    annotated: (inTreeName: string) => VolumePath | undefined = (name) => this.#paths.of(name),
  ): readonly ObservedPlugin[] {
    return this.#plugins.map((plugin) => {
      const { inTreeName, wanted } = plugin;
      const heldBy = this.#heldBy.get(inTreeName) ?? [];
      const current = annotated(inTreeName);
      const isFree = managed?.nothingMounted(this.#paths.of(inTreeName), plugin) ?? false;
      const isSuspended = !this.#paths.isDecided(inTreeName);
      return { inTreeName, wanted, current, isFree, isSuspended, heldBy, left: undefined };
    });
  }

  /** Puts a verdict in force. @returns whether the plugin was suspended, and whether it is on another way now */
  take({ inTreeName, path, heldBy }: PluginVerdict): {
    readonly wasSuspended: boolean;
    readonly isSwitched: boolean;
  } {
    const wasSuspended = !this.#paths.isDecided(inTreeName);
    const isSwitched = this.#paths.of(inTreeName) !== path;
    this.#paths.take(inTreeName, path);
    this.#heldBy.set(inTreeName, heldBy);
    return { wasSuspended, isSwitched };
  }

  /** All plugins go on as they were. */
  resume(): void {
    for (const { inTreeName } of this.#plugins) this.#paths.take(inTreeName, this.#paths.of(inTreeName));
  }

  /** Names of the plugins that are on CSI's way, sorted. */
  onCsi(): readonly string[] {
    return this.#plugins
      .map(({ inTreeName }) => inTreeName)
      .filter((name) => this.#paths.of(name) === "csi")
      .sort();
  }

  /** For the condition of the Node. */
  report(): readonly PluginPath[] {
    return this.#plugins.map(({ inTreeName, wanted }) => {
      const heldBy = this.#heldBy.get(inTreeName) ?? [];
      return { inTreeName, wanted, path: this.#paths.of(inTreeName), heldBy };
    });
  }

  #isHeld({ inTreeName, wanted }: MigratingPlugin): boolean {
    return this.#paths.of(inTreeName) !== wanted;
  }
}
