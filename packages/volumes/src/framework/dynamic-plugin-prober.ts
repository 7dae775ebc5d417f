/**
 * How plugins are found that come and go while the process runs. Source: docs/behaviour/volume-plugins.md 4.1,
 * docs/behaviour/flexvolume.md 2.
 */
import type { Component } from "@longshore/runtime";
import type { VolumeHost } from "./volume-host.ts";
import type { VolumePlugin } from "./volume-plugin.ts";

/** What has changed among the plugins that a prober finds. */
export type PluginEvent =
  /** A plugin has come, or replaces the one of its name. It is initialised. */
  | { readonly op: "addOrUpdate"; readonly plugin: VolumePlugin }
  /** The plugin is gone, or what has replaced it does not work. */
  | { readonly op: "remove"; readonly pluginName: string };

/**
 * Finds plugins in the background, for one plugin manager. It belongs to the controller or agent that it is given to, which
 * stops it.
 */
export interface DynamicPluginProber extends Component {
  /**
   * Begins to look. Resolves when what is there now has been looked at, or after a bounded time, so that a component knows
   * its plugins when it starts. `host` is what the plugins are initialised with.
   */
  init(host: VolumeHost): Promise<void>;
  /**
   * What has changed since the last call, in order; nothing: an empty list. It only hands over: it reads no file and runs no
   * program, so that a lookup never waits for a driver.
   */
  probe(): readonly PluginEvent[];
}
