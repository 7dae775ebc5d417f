/**
 * The volume plugin manager: finds the plugin of a volume, and the plugin with a capability.
 * Source: docs/behaviour/volume-plugins.md 4.
 *
 * Invariant: callers that might meet a migrated volume ask the migrated-plugin manager first
 * (docs/behaviour/volume-plugins.md 7.2); nothing in here knows of migration.
 */
import { errorChain } from "@longshore/runtime";
import type { DynamicPluginProber, PluginEvent } from "./dynamic-plugin-prober.ts";
import { isProbedPluginName, isQualifiedPluginName } from "./plugin-name.ts";
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
  findExpandablePluginBySpec(spec: VolumeSpec): VolumeExpander | undefined;
}

/** What the expand controller needs of a plugin. */
export type VolumeExpander = Pick<
  ExpandableVolumePlugin,
  "pluginName" | "expandVolumeDevice" | "requiresFSResize"
>;

/**
 * Initialises the plugins and returns their manager. A plugin that fails is left out and reported; without its prober, when
 * that fails, the others work nevertheless. Each lookup first takes over what the prober has found.
 */
export async function createVolumePluginManager(
  host: VolumeHost,
  plugins: readonly VolumePlugin[],
  prober?: DynamicPluginProber,
): Promise<VolumePluginManager> {
  const working = await initialised(host, prober);
  const byName = new Map<string, VolumePlugin>();
  const loadErrors: Error[] = [];
  for (const plugin of plugins) {
    const error = await load(plugin, host, byName);
    if (error === undefined) continue;
    loadErrors.push(error);
    host.logger.error("volume plugin not loaded", { plugin: plugin.pluginName, error: errorChain(error) });
  }
  return new Manager(host, byName, loadErrors, working);
}

/** The prober, or undefined when there is none or it cannot begin. */
async function initialised(
  host: VolumeHost,
  prober: DynamicPluginProber | undefined,
): Promise<DynamicPluginProber | undefined> {
  try {
    await prober?.init(host);
    return prober;
  } catch (error) {
    host.logger.error("dynamic plugins are not looked for", { error: errorChain(error) });
    return undefined;
  }
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

class Manager implements VolumePluginManager {
  readonly #host: VolumeHost;
  readonly #byName: ReadonlyMap<string, VolumePlugin>;
  readonly #prober: DynamicPluginProber | undefined;
  readonly #probed = new Map<string, VolumePlugin>();
  readonly loadErrors: readonly Error[];

  constructor(
    host: VolumeHost,
    byName: ReadonlyMap<string, VolumePlugin>,
    loadErrors: readonly Error[],
    prober: DynamicPluginProber | undefined,
  ) {
    this.#host = host;
    this.#byName = byName;
    this.#prober = prober;
    this.loadErrors = loadErrors;
  }

  get plugins(): readonly VolumePlugin[] {
    this.#refreshProbed();
    return [...this.#byName.values(), ...this.#probed.values()];
  }

  /** Takes over what the prober has found. A probe that fails leaves the plugins as they are. */
  #refreshProbed(): void {
    let events: readonly PluginEvent[] = [];
    try {
      events = this.#prober?.probe() ?? [];
    } catch (error) {
      this.#host.logger.warn("the probe for plugins failed: those known before are used", {
        error: errorChain(error),
      });
    }
    for (const event of events) this.#apply(event);
  }

  #apply(event: PluginEvent): void {
    if (event.op === "remove") this.#probed.delete(event.pluginName);
    else if (isProbedPluginName(event.plugin.pluginName)) {
      this.#probed.set(event.plugin.pluginName, event.plugin);
    } else {
      const plugin = event.plugin.pluginName;
      this.#host.logger.error("volume plugin not loaded: its name is invalid", { plugin });
    }
  }

  findPluginBySpec(spec: VolumeSpec | undefined): VolumePlugin {
    if (spec === undefined) {
      throw new PluginLookupError("Could not find plugin because volume spec is nil");
    }
    const matches = this.plugins.filter((plugin) => plugin.canSupport(spec));
    return theOnly(matches, `no volume plugin matched${missingDriver(spec)}`);
  }

  findPluginByName(name: string): VolumePlugin {
    this.#refreshProbed();
    const matches = [this.#byName.get(name), this.#probed.get(name)];
    return theOnly(
      matches.filter((plugin) => plugin !== undefined),
      `no volume plugin matched name: ${name}`,
    );
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

  findExpandablePluginBySpec(spec: VolumeSpec): VolumeExpander | undefined {
    let plugin: VolumePlugin;
    try {
      plugin = this.findPluginBySpec(spec);
    } catch (error) {
      const driver = kubeletExpandablePluginName(spec);
      if (driver === undefined) throw error;
      return leftToNode(driver);
    }
    return isExpandable(plugin) ? plugin : undefined;
  }
}

/** Drivers come and go: which one is missing is part of the error. */
function missingDriver({ volume, persistentVolume }: VolumeSpec): string {
  const driver = (volume?.flexVolume ?? persistentVolume?.spec?.flexVolume)?.driver;
  if (driver === undefined) return "";
  return `: the Flexvolume driver ${driver} is not installed here, or does not work: install it, or see the log for why`;
}

function theOnly(matches: readonly VolumePlugin[], none: string): VolumePlugin {
  const [match] = matches;
  if (match === undefined) throw new PluginLookupError(none);
  if (matches.length === 1) return match;
  const names = matches.map((plugin) => plugin.pluginName).join(",");
  throw new PluginLookupError(`multiple volume plugins matched: ${names}`);
}

/** The driver of a Flexvolume, which a node can expand without a driver on the controller. */
function kubeletExpandablePluginName({ volume, persistentVolume }: VolumeSpec): string | undefined {
  return (volume?.flexVolume ?? persistentVolume?.spec?.flexVolume)?.driver;
}

/** The controller has nothing to do: the node grows it. */
function leftToNode(pluginName: string): VolumeExpander {
  return {
    pluginName,
    expandVolumeDevice: async (_spec, newSizeBytes) => newSizeBytes,
    requiresFSResize: () => true,
  };
}

function deletable(plugin: VolumePlugin): DeletableVolumePlugin {
  if (!isDeletable(plugin)) throw new PluginLookupError("no deletable volume plugin matched");
  return plugin;
}
