/**
 * What the directory of a pod's own volume takes, in a file system that it shares with others. Source: upstream
 * pkg/volume/metrics_du.go, metrics_cached.go.
 */
import type { Host, TreeUsage } from "@longshore/runtime";
import type { VolumeStats } from "../../framework/volume-plugin.ts";

/** Counts the files, unless they are those that were counted last. */
export class DirectoryStats {
  readonly #counted = new Map<string, { readonly version: string; readonly usage: TreeUsage }>();

  /** @param version two equal ones say that the files are the same; undefined: they may be others each time */
  async of(host: Host, path: string, version: string | undefined, signal: AbortSignal): Promise<VolumeStats> {
    const kept = this.#counted.get(path);
    const isSame = kept !== undefined && kept.version === version;
    const usage = isSame ? kept.usage : await host.treeUsage(path, signal);
    if (version !== undefined) this.#counted.set(path, { version, usage });
    const { totalBytes, availableBytes, totalInodes, availableInodes } = await host.usage(path);
    const bytes = { total: totalBytes, available: availableBytes, used: usage.usedBytes };
    if (totalInodes === 0) return { bytes };
    return { bytes, inodes: { total: totalInodes, available: availableInodes, used: usage.usedInodes } };
  }

  /** The directory is gone. */
  forget(path: string): void {
    this.#counted.delete(path);
  }
}
