/** How a component gets its in-tree plugins, of which a build may have none. */
import type { CloudProvider, DiskCloud, VolumePlugin } from "@longshore/volumes";

/** Makes the in-tree plugins of one component, not initialised, each bound to the cloud of its provider. */
export type MakeInTreePlugins = (cloudFor: (provider: CloudProvider) => DiskCloud) => readonly VolumePlugin[];
