/**
 * The in-tree plugins, in one list. Controllers and node agents take theirs from here: a further plugin is a folder beside
 * this file and an entry in the list.
 */
import type { CloudProvider, DiskCloud } from "../framework/ports.ts";
import type { VolumePlugin } from "../framework/volume-plugin.ts";
import { awsEbs } from "./aws-ebs/aws-ebs-plugin.ts";
import type { DiskDescription } from "./disk/disk-description.ts";
import { diskPlugin } from "./disk/disk-plugin.ts";
import { gcePd } from "./gce-pd/gce-pd.ts";

/** The plugins of disks, by their descriptions. */
export const inTreeDisks: readonly DiskDescription[] = [awsEbs, gcePd];

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
  return inTreeDisks.map((disks) =>
    diskPlugin(disks, cloudFor === undefined ? {} : { cloud: cloudFor(disks.provider) }),
  );
}
