/** A plugin whose volumes hold files made from objects of the API, kept current and read-only for containers. */
import type { Volume } from "@longshore/kube";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type { MounterArgs, VolumePlugin } from "../../framework/volume-plugin.ts";
import { contentInForce, writeFiles } from "./atomic-writer.ts";
import type { PayloadEnv } from "./object-payloads.ts";
import type { Payload } from "./payload.ts";
import {
  makeVolumeDirectory,
  type PodDirectory,
  podDirectoryPlugin,
  putInMemory,
  sourcesOf,
} from "./pod-directory-plugin.ts";

/** What is read for the files of a volume. */
export interface FilesOf extends PayloadEnv {
  readonly volume: PodDirectory;
  readonly volumeHost: VolumeHost;
  readonly args: MounterArgs;
  readonly signal: AbortSignal;
}

/** What is special about the plugin. */
export interface FilesPlugin {
  readonly pluginName: string;
  readonly source: keyof Volume;
  /** Its files are secret: they lie in memory, where the host can. */
  readonly isSecret?: boolean;
  /** The files as they are to be now. */
  payload(of: FilesOf): Promise<Payload>;
  readonly followsPod?: (volume: Volume) => boolean;
}

/** Of the volume's own directory: containers of any user read in it. */
const directoryMode = 0o755;

/** The plugin, to be given to `createVolumePluginManager`. */
export function filesPlugin({ payload, isSecret = false, ...own }: FilesPlugin): VolumePlugin {
  return podDirectoryPlugin({
    ...own,
    readOnly: true,
    contentOf: contentInForce,
    async setUp(env, volume, args, signal) {
      const { volumeHost, kubelet } = env;
      const { path, reader } = volume;
      // First what can fail for reasons of the user: then nothing has been made yet.
      const files = await payload({ sources: sourcesOf(env), reader, volume, volumeHost, args, signal });
      await makeVolumeDirectory(env, path, directoryMode);
      if (isSecret) await putInMemory(env, path, { mode: directoryMode });
      const { clock, random } = volumeHost;
      const { fsGroup } = args;
      await writeFiles({ clock, random, host: kubelet.host }, { directory: path, payload: files, fsGroup });
      if (fsGroup !== undefined) await kubelet.host.chownTree(path, fsGroup, { readOnly: true });
    },
  });
}
