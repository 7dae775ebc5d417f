/** Names and places of Flexvolume drivers. Pure. Source: docs/behaviour/flexvolume.md 1 and 4. */
import { isProbedPluginName, isQualifiedPluginName } from "../../framework/plugin-name.ts";
import { kubeletPaths, unescapeQualifiedName } from "../../framework/volume-host.ts";

/** Where kubelets and controller managers look for drivers, unless they are given another directory. */
export const defaultDriverDirectory = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec";

/** What the name of a driver's directory says. */
export interface DriverNames {
  /** `vendor/driver`, or `driver` alone. */
  readonly pluginName: string;
  /** Name of the program in the directory. */
  readonly executable: string;
}

/** `k8s.io~nfs` → the plugin `k8s.io/nfs` with the program `nfs`. */
export function namesOfDirectory(directory: string): DriverNames {
  return {
    pluginName: unescapeQualifiedName(directory),
    executable: directory.slice(directory.lastIndexOf("~") + 1),
  };
}

/** What is wrong with the name of a plugin; undefined: nothing. */
export function problemOfName(pluginName: string): string | undefined {
  if (isProbedPluginName(pluginName)) return undefined;
  return `"${pluginName}" is no name of a plugin: name the directory <vendor>~<driver>, the vendor a DNS name, the driver of letters, digits, "-", "_" and "."`;
}

/**
 * What keeps a plugin of this name from being attachable; undefined: nothing. The unique name of an attached volume is
 * split into vendor, driver and volume.
 */
export function problemOfAttachableName(pluginName: string): string | undefined {
  if (isQualifiedPluginName(pluginName)) return undefined;
  return `a driver that attaches needs a vendor: install it as <vendor>~${pluginName}, or let its init say "attach": false`;
}

/** The directory below which all Flexvolume devices of a node are mounted. */
export function deviceMountsDirectory(rootDir: string): string {
  return kubeletPaths.pluginDir(rootDir, "kubernetes.io/flexvolume");
}

/** Where the device of a volume is mounted. @param volumeName the spec's name */
export function deviceMountPath(rootDir: string, pluginName: string, volumeName: string): string {
  return `${deviceMountsDirectory(rootDir)}/${pluginName}/mounts/${volumeName}`;
}

/** Whose device is mounted there; undefined: the path is no {@link deviceMountPath}. */
export function volumeOfDeviceMount(
  rootDir: string,
  path: string,
): { readonly pluginName: string; readonly volumeName: string } | undefined {
  const prefix = `${deviceMountsDirectory(rootDir)}/`;
  if (!path.startsWith(prefix)) return undefined;
  const [, pluginName, volumeName] =
    /^([^/]+(?:\/[^/]+)?)\/mounts\/([^/]+)$/.exec(path.slice(prefix.length)) ?? [];
  return pluginName === undefined || volumeName === undefined ? undefined : { pluginName, volumeName };
}
