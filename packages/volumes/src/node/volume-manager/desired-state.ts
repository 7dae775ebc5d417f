/**
 * What should be mounted: for each volume the pods that use it. Filled by the populator, emptied
 * when pods end. Source: docs/behaviour/node-agent.md 4.
 */
import type { Pod, Stored } from "@longshore/kube";
import type { UniqueVolumeName } from "../../framework/names.ts";
import type { VolumePlugin } from "../../framework/plugin.ts";
import type { VolumeSpec } from "../../framework/spec.ts";

/** One pod that wants a volume. */
export interface DesiredPod {
  readonly pod: Stored<Pod>;
  readonly spec: VolumeSpec;
  /** The names of the volume in the pod's spec; usually one. */
  readonly outerNames: ReadonlySet<string>;
}

/** A volume that at least one pod wants. */
export interface DesiredVolume {
  readonly uniqueName: UniqueVolumeName;
  readonly plugin: VolumePlugin;
  readonly attachable: boolean;
  readonly deviceMountable: boolean;
  /** The in-tree plugin of the spec as the user wrote it, if it is one that can migrate. */
  readonly origin: string | undefined;
  readonly pods: ReadonlyMap<string, DesiredPod>;
}

/** What the populator found out about one volume of a pod. */
export type ResolvedVolume = Omit<DesiredVolume, "pods"> & DesiredPod;

interface Entry extends DesiredVolume {
  readonly pods: Map<string, DesiredPod>;
}

/** The desired state of the node's volumes. */
export class DesiredState {
  readonly #volumes = new Map<UniqueVolumeName, Entry>();

  /** Adds or replaces the pod's entry; the first pod fixes what the volume is capable of. */
  add({ pod, spec, outerNames, ...volume }: ResolvedVolume): void {
    const entry = this.#volumes.get(volume.uniqueName) ?? { ...volume, pods: new Map() };
    this.#volumes.set(volume.uniqueName, entry);
    entry.pods.set(pod.metadata.uid, { pod, spec, outerNames });
  }

  get(uniqueName: UniqueVolumeName): DesiredVolume | undefined {
    return this.#volumes.get(uniqueName);
  }

  podOf(uniqueName: UniqueVolumeName, podUID: string): DesiredPod | undefined {
    return this.#volumes.get(uniqueName)?.pods.get(podUID);
  }

  volumes(): Iterable<DesiredVolume> {
    return this.#volumes.values();
  }

  volumesOf(podUID: string): readonly DesiredVolume[] {
    return [...this.#volumes.values()].filter((volume) => volume.pods.has(podUID));
  }

  /** Removes the pod's entry, and the volume with its last pod. */
  delete(uniqueName: UniqueVolumeName, podUID: string): void {
    const entry = this.#volumes.get(uniqueName);
    entry?.pods.delete(podUID);
    if (entry?.pods.size === 0) this.#volumes.delete(uniqueName);
  }

  /** Removes the volume with the entries of all its pods. */
  deleteVolume(uniqueName: UniqueVolumeName): void {
    this.#volumes.delete(uniqueName);
  }

  /** Every pod that wants at least one volume. */
  podUIDs(): ReadonlySet<string> {
    return new Set([...this.#volumes.values()].flatMap((volume) => [...volume.pods.keys()]));
  }
}
