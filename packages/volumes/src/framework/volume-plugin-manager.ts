/**
 * The volume plugin manager: finds the plugin of a volume, and the plugin with a capability.
 * Source: docs/behaviour/volume-plugins.md 4.
 *
 * Invariant: callers that might meet a migrated volume ask the migrated-plugin manager first
 * (docs/behaviour/volume-plugins.md 7.2); nothing in here knows of migration.
 */
import { errorChain } from "@longshore/runtime";
import type { VolumeHost } from "./volume-host.ts";
import {
  type AttachableVolumePlugin,
  type DeletableVolumePlugin,
  type DeviceMountableVolumePlugin,
  type ExpandableVolumePlugin,
  isAttachable,
  isDeletable,
  isDeviceMountable,
  isExpandable,
  isProvisionable,
  type ProvisionableVolumePlugin,
  type VolumePlugin,
} from "./volume-plugin.ts";
import type { VolumeSpec } from "./volume-spec.ts";

/** No plugin, or more than one, answers to the spec or name; or it lacks the capability. */
export class PluginLookupError extends Error {
  override readonly name = "PluginLookupError";
}

/** Finds plugins. Methods throw {@link PluginLookupError} where the table in docs/behaviour/volume-plugins.md 4.2 says error. */
export interface VolumePluginManager {
  readonly plugins: readonly VolumePlugin[];
  /** What kept plugins from loading; the others work nevertheless. */
  readonly loadErrors: readonly Error[];
  findPluginBySpec(spec: VolumeSpec | undefined): VolumePlugin;
  findPluginByName(name: string): VolumePlugin;
  /** Undefined when the plugin cannot attach, or says that this volume needs no attach. */
  findAttachablePluginBySpec(spec: VolumeSpec): Promise<AttachableVolumePlugin | undefined>;
  /** Undefined when the plugin cannot attach; `canAttach` is not asked. */
  findAttachablePluginByName(name: string): AttachableVolumePlugin | undefined;
  findDeviceMountablePluginBySpec(spec: VolumeSpec): Promise<DeviceMountableVolumePlugin | undefined>;
  findProvisionablePluginByName(name: string): ProvisionableVolumePlugin;
  findDeletablePluginBySpec(spec: VolumeSpec): DeletableVolumePlugin;
  findDeletablePluginByName(name: string): DeletableVolumePlugin;
  findExpandablePluginBySpec(spec: VolumeSpec): ExpandableVolumePlugin | undefined;
}

/** Initialises the plugins and returns their manager. A plugin that fails is left out and reported. */
export async function createVolumePluginManager(
  host: VolumeHost,
  plugins: readonly VolumePlugin[],
): Promise<VolumePluginManager> {
  const byName = new Map<string, VolumePlugin>();
  const loadErrors: Error[] = [];
  for (const plugin of plugins) {
    const error = await load(plugin, host, byName);
    if (error === undefined) continue;
    loadErrors.push(error);
    host.logger.error("volume plugin not loaded", { plugin: plugin.pluginName, error: errorChain(error) });
  }
  return new Manager(byName, loadErrors);
}

async function load(
  plugin: VolumePlugin,
  host: VolumeHost,
  byName: Map<string, VolumePlugin>,
): Promise<Error | undefined> {
  const name = plugin.pluginName;
  if (!isQualifiedPluginName(name)) {
    return new PluginLookupError(`volume plugin has invalid name: "${name}"; use <vendor>/<plugin>`);
  }
  if (byName.has(name)) {
    return new PluginLookupError(`volume plugin "${name}" was registered more than once`);
  }
  try {
    await plugin.init(host);
  } catch (error) {
    return new PluginLookupError(`Failed to load volume plugin "${name}"`, { cause: error });
  }
  byName.set(name, plugin);
  return undefined;
}

/** A DNS subdomain, one slash, and a name of letters, digits, `-`, `_` and `.`. */
function isQualifiedPluginName(name: string): boolean {
  return /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/.test(name);
}

class Manager implements VolumePluginManager {
  readonly #byName: ReadonlyMap<string, VolumePlugin>;
  readonly loadErrors: readonly Error[];

  constructor(byName: ReadonlyMap<string, VolumePlugin>, loadErrors: readonly Error[]) {
    this.#byName = byName;
    this.loadErrors = loadErrors;
  }

  get plugins(): readonly VolumePlugin[] {
    return [...this.#byName.values()];
  }

  findPluginBySpec(spec: VolumeSpec | undefined): VolumePlugin {
    if (spec === undefined) {
      throw new PluginLookupError("Could not find plugin because volume spec is nil");
    }
    const matches = this.plugins.filter((plugin) => plugin.canSupport(spec));
    const [match] = matches;
    if (match === undefined) throw new PluginLookupError("no volume plugin matched");
    if (matches.length > 1) {
      const names = matches.map((plugin) => plugin.pluginName).join(",");
      throw new PluginLookupError(`multiple volume plugins matched: ${names}`);
    }
    return match;
  }

  findPluginByName(name: string): VolumePlugin {
    const plugin = this.#byName.get(name);
    if (plugin === undefined) throw new PluginLookupError(`no volume plugin matched name: ${name}`);
    return plugin;
  }

  async findAttachablePluginBySpec(spec: VolumeSpec): Promise<AttachableVolumePlugin | undefined> {
    const plugin = this.findPluginBySpec(spec);
    return isAttachable(plugin) && (await plugin.canAttach(spec)) ? plugin : undefined;
  }

  findAttachablePluginByName(name: string): AttachableVolumePlugin | undefined {
    const plugin = this.findPluginByName(name);
    return isAttachable(plugin) ? plugin : undefined;
  }

  async findDeviceMountablePluginBySpec(spec: VolumeSpec): Promise<DeviceMountableVolumePlugin | undefined> {
    const plugin = this.findPluginBySpec(spec);
    return isDeviceMountable(plugin) && (await plugin.canDeviceMount(spec)) ? plugin : undefined;
  }

  findProvisionablePluginByName(name: string): ProvisionableVolumePlugin {
    const plugin = this.findPluginByName(name);
    if (!isProvisionable(plugin)) throw new PluginLookupError("no provisionable volume plugin matched");
    return plugin;
  }

  findDeletablePluginBySpec(spec: VolumeSpec): DeletableVolumePlugin {
    return deletable(this.findPluginBySpec(spec));
  }

  findDeletablePluginByName(name: string): DeletableVolumePlugin {
    return deletable(this.findPluginByName(name));
  }

  findExpandablePluginBySpec(spec: VolumeSpec): ExpandableVolumePlugin | undefined {
    const plugin = this.findPluginBySpec(spec);
    return isExpandable(plugin) ? plugin : undefined;
  }
}

function deletable(plugin: VolumePlugin): DeletableVolumePlugin {
  if (!isDeletable(plugin)) throw new PluginLookupError("no deletable volume plugin matched");
  return plugin;
}
