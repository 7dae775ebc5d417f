/** Work that does not go on, and what it is measured by. */
import type { PluginName } from "@longshore/local";

/** What the attach/detach controller goes by: also its own gates, or the node's statement alone. */
export type SkewMode = "upstream" | "node-only";

/** What cluster to flip. */
export interface SkewOptions {
  readonly plugins: readonly PluginName[];
  readonly nodes: number;
  readonly mode: SkewMode;
}

/** Work that does not go on. */
export interface Stall {
  readonly plugin: PluginName;
  readonly node: string;
  /** What does not happen. */
  readonly what: "pod does not start" | "pod does not end" | "volume stays attached" | "volume stays";
  /** The gates of the plugin at that moment. */
  readonly controllerManager: "on" | "off";
  readonly kubelet: "on" | "off";
  /** The last warning about the pod, as its user sees it. */
  readonly warning?: string;
}

/** What must come about before all is at rest. */
export interface Expectation {
  readonly plugin: PluginName;
  readonly node: string;
  readonly what: Stall["what"];
  readonly pod?: string;
  holds(): boolean;
}

/** Whether both are of the same work. */
export function isSame(a: Stall, b: Stall): boolean {
  return a.plugin === b.plugin && a.node === b.node && a.what === b.what;
}
