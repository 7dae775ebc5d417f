/**
 * What reconstruction could not understand: directories of pods' volumes that can only be unmounted
 * by name, and what must stay in `volumesInUse` because of them.
 */
import { type KubeClient, resources } from "@longshore/kube";
import type { ActualState } from "./actual-state.ts";
import { type LeftoverDirectory, type ReconstructEnv, reconstructVolumes } from "./reconstruct.ts";

/** What it works with. */
export type LeftoversEnv = ReconstructEnv & { readonly kube: KubeClient; readonly nodeName: string };

/** The directories that are left to be cleaned up. */
export class Leftovers {
  #directories: readonly LeftoverDirectory[] = [];
  #namesInUse: readonly string[] = [];

  /** Fills the actual state from disk and keeps what was not understood. */
  async restore(env: LeftoversEnv, signal: AbortSignal): Promise<void> {
    this.#directories = await reconstructVolumes(env);
    this.#namesInUse = await this.#namesFromLastList(env, signal);
  }

  get directories(): readonly LeftoverDirectory[] {
    return this.#directories;
  }

  /** Names that stay in `volumesInUse`: unknown is never detached. */
  get namesInUse(): readonly string[] {
    return this.#namesInUse;
  }

  /** The directory is cleaned up, or its volume is known again. */
  forget(directory: LeftoverDirectory): void {
    this.#directories = this.#directories.filter((other) => other !== directory);
    if (this.#directories.length === 0) this.#namesInUse = [];
  }

  /** Whether a volume is mounted again for certain where the directory is. */
  isMountedAnew({ podUID, path }: LeftoverDirectory, actual: ActualState): boolean {
    return [...actual.volumes()].some(({ pods }) => {
      const mount = pods.get(podUID);
      return mount?.state === "mounted" && (mount.path === path || mount.path.startsWith(`${path}/`));
    });
  }

  /** What the last list named of the plugins that have unreadable mounts. */
  async #namesFromLastList(env: LeftoversEnv, signal: AbortSignal): Promise<readonly string[]> {
    const plugins = new Set<string>();
    for (const { plugin, path } of this.#directories) {
      if ((await env.host.listMounts(path)).length > 0) plugins.add(plugin.pluginName);
    }
    if (plugins.size === 0) return [];
    const node = await env.kube.get(resources.nodes, { name: env.nodeName }, { signal });
    return (node?.status?.volumesInUse ?? []).filter((volume) =>
      [...plugins].some((plugin) => volume.startsWith(`${plugin}/`)),
    );
  }
}
