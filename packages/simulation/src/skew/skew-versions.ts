/**
 * Upgrade, downgrade and upgrade again of one cluster under work, with kubelets that are up to three minor versions behind
 * the controller manager. Each component has the gates that its version of Kubernetes has by default
 * (docs/behaviour/migration-controllers.md D1).
 */
import { clusterPlugin, type PluginName } from "@longshore/local";
import { gateTable } from "@longshore/volumes";
import { componentsOf, controllerManager } from "./flip.ts";
import { SkewWorld } from "./skew-world.ts";
import type { SkewMode, Stall } from "./stall.ts";

/** In which order a downgrade goes: as upstream demands, or as the cluster-version operator of OpenShift does. */
export type DowngradeOrder = "nodes first" | "controller manager first";

/** What is upgraded and downgraded. */
export interface VersionStory {
  readonly plugins: readonly PluginName[];
  readonly mode: SkewMode;
  /** The minor version of Kubernetes 1 of the controller manager after the upgrade. */
  readonly minor: number;
  /** How many minor versions the kubelets are behind, before they follow. */
  readonly behind: number;
  readonly downgrade: DowngradeOrder;
}

/** One component got another version. */
export interface VersionStep {
  /** e.g. `upgrade: node-1, drained: 1.20 to 1.23` */
  readonly words: string;
  readonly stalls: readonly Stall[];
}

/** How the story went. */
export interface VersionOutcome {
  readonly steps: readonly VersionStep[];
  readonly violations: readonly string[];
}

const nodes = 2;

/** Plays the story. */
export function playVersions(story: VersionStory): Promise<VersionOutcome> {
  const { plugins, mode, minor, behind, downgrade } = story;
  const first = minor - behind;
  const kubelets = componentsOf(nodes).slice(1);
  return SkewWorld.play({ plugins, nodes, mode }, false, async (world) => {
    const steps: VersionStep[] = [];
    const versions = new Map(componentsOf(nodes).map((component) => [component, first]));
    const set = async (phase: string, component: string, to: number) => {
      const from = versions.get(component);
      const isKubelet = component !== controllerManager;
      await world.setGates(component, gatesAt(to), isKubelet);
      versions.set(component, to);
      const words = `${phase}: ${component}${isKubelet ? ", drained" : ""}: 1.${from} to 1.${to}`;
      steps.push({ words, stalls: world.stalls });
    };
    const manager = async (phase: string, to: number) => {
      for (let at = versions.get(controllerManager) ?? to; at !== to; ) {
        at += Math.sign(to - at);
        await set(phase, controllerManager, at);
      }
    };
    const followers = async (phase: string, to: number) => {
      for (const kubelet of kubelets) await set(phase, kubelet, to);
    };
    for (const component of componentsOf(nodes)) await world.setGates(component, gatesAt(first), true);
    await manager("upgrade", minor);
    await followers("upgrade", minor);
    if (downgrade === "nodes first") await followers("downgrade", first);
    await manager("downgrade", first);
    if (downgrade === "controller manager first") await followers("downgrade", first);
    await manager("second upgrade", minor);
    await followers("second upgrade", minor);
    await world.end();
    return { steps, violations: world.watch.violations };
  });
}

/** Every migration gate as the version has it by default. */
export function gatesAt(minor: number): Readonly<Record<string, boolean>> {
  return Object.fromEntries(gateTable(`1.${minor}`).map((row) => [row.gate, row.default]));
}

/**
 * The stories of plugins: each begins at the last version in which the plugin's migration is off by default, and its controller
 * manager goes one to three versions on before the kubelets follow. None for a plugin whose migration never goes on by default.
 */
export function versionStories(plugins: readonly PluginName[], mode: SkewMode): readonly VersionStory[] {
  const minors = [...new Set(plugins.flatMap((plugin) => onByDefaultAt(plugin) ?? []))].sort((a, b) => a - b);
  return minors.flatMap((minor) => {
    const changing = plugins.filter((plugin) => onByDefaultAt(plugin) === minor);
    return [1, 2, 3].flatMap((behind) =>
      (["nodes first", "controller manager first"] as const).map((downgrade) => ({
        plugins: changing,
        mode,
        minor: minor - 1 + behind,
        behind,
        downgrade,
      })),
    );
  });
}

/** The minor version in which the migration of the plugin is first on by default; undefined: in none. */
export function onByDefaultAt(plugin: PluginName): number | undefined {
  const { gate } = clusterPlugin(plugin);
  return gateTable("1.20").find((row) => row.gate === gate)?.history.onByDefault;
}
