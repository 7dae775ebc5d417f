/**
 * Which Portworx volumes the pods of this node have: a file for each in `<plugin>/volumes`, named by pod and volume.
 *
 * A pod's directory does not say which volume is mounted there, and a volume that is not attached by the controller has no
 * global mount that would. Upstream asks the provider by the directory's name.
 */
import type { Host } from "@longshore/runtime";
import { kubeletPaths } from "../../framework/volume-host.ts";

/** A volume in a pod, by the name of its spec. */
export interface PodVolume {
  readonly podUID: string;
  readonly name: string;
}

/** The files. */
export class PodVolumes {
  readonly #host: Host;
  readonly #directory: string;

  constructor(host: Host, rootDir: string, pluginName: string) {
    this.#host = host;
    this.#directory = `${kubeletPaths.pluginDir(rootDir, pluginName)}/volumes`;
  }

  /** Keeps that the pod has the volume. Durable. */
  async record(volume: PodVolume, volumeID: string): Promise<void> {
    await this.#host.makeDirectory(this.#directory);
    await this.#host.writeFileAtomic(this.#pathOf(volume), volumeID);
  }

  /** The id of the pod's volume; undefined when none is kept. */
  async idOf(volume: PodVolume): Promise<string | undefined> {
    return await this.#host.readFile(this.#pathOf(volume));
  }

  /**
   * Whether a pod other than this has the volume mounted. A file without a mount is forgotten: its pod went while the machine was off,
   * or mounts the volume again, for which it is attached again. Nothing of the volume may be mounted meanwhile.
   */
  async isUsedByOthers(
    volume: PodVolume,
    volumeID: string,
    isMounted: (other: PodVolume) => Promise<boolean>,
  ): Promise<boolean> {
    const own = this.#pathOf(volume);
    for (const file of (await this.#host.readDirectory(this.#directory)) ?? []) {
      const path = `${this.#directory}/${file}`;
      if (path === own || (await this.#host.readFile(path)) !== volumeID) continue;
      const [podUID = "", ...names] = file.split("~");
      if (await isMounted({ podUID, name: names.join("/") })) return true;
      await this.#host.removeFile(path);
    }
    return false;
  }

  /** Forgets the pod's volume. */
  async forget(volume: PodVolume): Promise<void> {
    await this.#host.removeFile(this.#pathOf(volume));
  }

  /** UIDs have no `~`, and neither has a name that the API takes. */
  #pathOf({ podUID, name }: PodVolume): string {
    return `${this.#directory}/${podUID}~${name.replaceAll("/", "~")}`;
  }
}
