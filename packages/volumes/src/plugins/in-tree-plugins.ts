/**
 * The in-tree plugins, in one list. Controllers and node agents take theirs from here: a further plugin is a folder beside
 * this file and an entry in the list.
 */
import type { CloudProvider, DiskCloud } from "../framework/ports.ts";
import type { VolumePlugin } from "../framework/volume-plugin.ts";
import { awsEbs } from "./aws-ebs/aws-ebs-plugin.ts";
import { azureDisk } from "./azure-disk/azure-disk.ts";
import { azureFilePlugin } from "./azure-file/azure-file-plugin.ts";
import { cinder } from "./cinder/cinder.ts";
import type { DiskDescription } from "./disk/disk-description.ts";
import { diskPlugin, type InTreePluginOptions } from "./disk/disk-plugin.ts";
import { gcePd } from "./gce-pd/gce-pd.ts";
import { portworxPlugin } from "./portworx-volume/portworx-plugin.ts";
import { rbd } from "./rbd/rbd.ts";
import { vsphereVolume } from "./vsphere-volume/vsphere-volume.ts";

/** The plugins of disks with a global mount, by their descriptions. */
export const inTreeDisks: readonly DiskDescription[] = [awsEbs, gcePd, azureDisk, cinder, vsphereVolume, rbd];

/** How each plugin is made, and whose disks it has. */
const makers: readonly {
  readonly provider: CloudProvider;
  make(options: InTreePluginOptions): VolumePlugin;
}[] = [
  ...inTreeDisks.map((disks) => ({
    provider: disks.provider,
    make: (options: InTreePluginOptions) => diskPlugin(disks, options),
  })),
  { provider: "azure-file", make: azureFilePlugin },
  { provider: "portworx-volume", make: portworxPlugin },
];

/** What the in-tree plugins are made from. */
export interface InTreePluginsOptions {
  /**
   * The disk API of a provider, bound to its caller (component and path). Left out where there is no cloud provider; then
   * every operation that needs one fails as Kubernetes' does.
   */
  readonly cloudFor?: (provider: CloudProvider) => DiskCloud;
}

/** All in-tree plugins, to be given to `createVolumePluginManager`; new ones at each call. */
export function inTreePlugins({ cloudFor }: InTreePluginsOptions = {}): VolumePlugin[] {
  return makers.map(({ provider, make }) =>
    make(cloudFor === undefined ? {} : { cloud: cloudFor(provider) }),
  );
}
