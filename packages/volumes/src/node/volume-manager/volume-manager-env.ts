/** What the volume manager is given. */
import type { EventRecorder, KubeClient, Node } from "@longshore/kube";
import type { Host, RuntimeEnv } from "@longshore/runtime";
import type { ContainerRuntime } from "../../framework/ports.ts";
import type { VolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import type { RegisteredCsiDrivers } from "../../plugins/csi/registered-csi-drivers.ts";
import type { VolumePaths } from "./volume-paths.ts";

/** What the volume manager works with. */
export interface VolumeManagerEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly runtime: ContainerRuntime;
  readonly plugins: VolumePluginManager;
  /** Which way each plugin's volumes go. */
  readonly paths: VolumePaths;
  readonly events: EventRecorder;
  /** Undefined where there is no CSI plugin. */
  readonly csiDrivers: RegisteredCsiDrivers | undefined;
  /** A volume is neither wanted nor here any more. */
  readonly onVolumeForgotten: (uniqueName: string) => void;
  /** This node as last seen, from a cache; a hint only. */
  readonly cachedNode: () => Node | undefined;
}

/** How the volume manager runs. */
export interface VolumeManagerOptions {
  readonly nodeName: string;
  /** The kubelet root directory. */
  readonly rootDir: string;
  /** Called when what the shell posts may have changed; must not throw. */
  readonly onChange: () => void;
}
