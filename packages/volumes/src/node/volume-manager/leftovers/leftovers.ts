/**
 * What reconstruction could not understand: directories whose volume is not known, and the names that must stay in
 * `volumesInUse` because of them.
 */
import { type KubeClient, resources } from "@longshore/kube";
import { backoffMs, type Clock, errorChain } from "@longshore/runtime";
import { reconstructDevices } from "./reconstruct-devices.ts";
import { type Leftover, type ReconstructEnv, reconstructVolumes } from "./reconstruct-volumes.ts";

/** What restoring works with. */
export type LeftoversEnv = ReconstructEnv & {
  readonly clock: Clock;
  readonly kube: KubeClient;
  readonly nodeName: string;
};

const restoreBackoff = { initialMs: 200, maximumMs: 10_000 };

/** The directories that are left to be cleaned up, by path. */
export class Leftovers {
  readonly #directories = new Map<string, Leftover>();
  #namesInUse: readonly string[] = [];

  /** Fills the actual state from disk and keeps what was not understood; tries until it succeeds. */
  async restore(env: LeftoversEnv, signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#restoreOnce(env, signal);
      } catch (error) {
        signal.throwIfAborted();
        env.logger.warn("reading back what is mounted failed", { error: errorChain(error) });
        await env.clock.sleep(backoffMs(restoreBackoff, attempt), signal);
      }
    }
  }

  async #restoreOnce(env: LeftoversEnv, signal: AbortSignal): Promise<void> {
    const found = [...(await reconstructVolumes(env)), ...(await reconstructDevices(env))];
    this.#namesInUse = await namesFromLastList(env, found, signal);
    for (const leftover of found) this.#directories.set(leftover.path, leftover);
  }

  get(path: string): Leftover | undefined {
    return this.#directories.get(path);
  }

  get all(): readonly Leftover[] {
    return [...this.#directories.values()];
  }

  /** Names that stay in `volumesInUse`: unknown is never detached. */
  get namesInUse(): readonly string[] {
    return this.#namesInUse;
  }

  /** Every pod that a directory is left of. */
  podUIDs(): readonly string[] {
    return this.all.flatMap((leftover) => (leftover.kind === "pod" ? leftover.podUID : []));
  }

  /** Whether a directory of the pod is left. */
  hasPod(podUID: string): boolean {
    return this.podUIDs().includes(podUID);
  }

  /** The directory is cleaned up, or its volume is known again. */
  forget(path: string): void {
    this.#directories.delete(path);
    // All or none: which of the names a directory stands for is not known.
    if (this.#directories.size === 0) this.#namesInUse = [];
  }
}

/** What the last list named of the plugins that have directories which were not understood. */
async function namesFromLastList(
  env: LeftoversEnv,
  found: readonly Leftover[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const plugins = new Set<string>();
  for (const { plugin, path, kind } of found) {
    // A driver need not mount anything to stage a volume.
    if (kind === "staged" || (await env.host.listMounts(path)).length > 0) plugins.add(plugin.pluginName);
  }
  if (plugins.size === 0) return [];
  const node = await env.kube.get(resources.nodes, { name: env.nodeName }, { signal });
  return (node?.status?.volumesInUse ?? []).filter((volume) =>
    [...plugins].some((plugin) => volume.startsWith(`${plugin}/`)),
  );
}
