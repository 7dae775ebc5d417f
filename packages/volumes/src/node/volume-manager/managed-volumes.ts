/** What the node migration asks the volume manager, which knows nothing of it. */
import type { VolumePath } from "./volume-paths.ts";

/** An in-tree plugin and the driver that takes over from it. */
export interface PluginNames {
  readonly inTreeName: string;
  readonly driverName: string;
}

/** Something about the volumes of the node changed. */
export interface VolumeChange {
  /** Undefined: not one volume alone. */
  readonly uniqueName: string | undefined;
  /** The in-tree plugin that the volume came from, where that is known. */
  readonly origin: string | undefined;
}

/** A disk of which something is or may be mounted here. */
export interface MountedDisk {
  readonly uniqueName: string;
  readonly devicePath: string;
}

/** The volumes of the node as the migration sees them. */
export interface ManagedVolumes {
  /**
   * True when nothing of the plugin is, may be or is about to be mounted by the volume manager on the given way.
   * Volumes that pods merely wait for do not count.
   */
  nothingMounted(path: VolumePath, plugin: PluginNames): boolean;
  /** True for a volume that pods wait for, and of which nothing is or may be mounted. */
  isMerelyWanted(uniqueName: string): boolean;
  /** Attached volumes of which something is or may be mounted. */
  mountedDisks(): readonly MountedDisk[];
  /** Calls `listener` after each change of what is desired or mounted; returns a function that unsubscribes. */
  onVolumeChange(listener: (change: VolumeChange) => void): () => void;
  /** Ways of plugins changed (or are about to): volumes that are wanted but not here must be resolved again. */
  pathsChanged(): void;
}
