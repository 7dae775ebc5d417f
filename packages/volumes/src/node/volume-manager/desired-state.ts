/**
 * What should be mounted: for each volume the pods that use it. Filled and emptied by the pod controller.
 * Source: docs/behaviour/node-agent.md 4.
 *
 * Invariant: entries are values: a change replaces the entry.
 */
import type { Pod, Stored } from "@longshore/kube";
import type { UniqueVolumeName } from "../../framework/unique-volume-name.ts";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { VolumesByPod } from "./volumes-by-pod.ts";

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

/** What was found out about one volume of a pod. */
export type ResolvedVolume = Omit<DesiredVolume, "pods"> & DesiredPod;

/** The desired state of the node's volumes. */
export class DesiredState {
  readonly #volumes = new Map<UniqueVolumeName, DesiredVolume>();
  readonly #byPod = new VolumesByPod();
  readonly #onChange: (volume: DesiredVolume) => void;

  /** @param onChange called after a pod came or went, with the volume as it is now; must not throw */
  constructor(onChange: (volume: DesiredVolume) => void = () => {}) {
    this.#onChange = onChange;
  }

  /** Adds or replaces the pod's entry; the first pod fixes what the volume is capable of, until it needs no attach. */
  add({ pod, spec, outerNames, ...volume }: ResolvedVolume): void {
    const { uniqueName } = volume;
    const { uid } = pod.metadata;
    const entry = this.#volumes.get(uniqueName) ?? { ...volume, pods: new Map() };
    const pods = new Map(entry.pods).set(uid, { pod, spec, outerNames });
    this.#byPod.add(uid, uniqueName);
    this.#volumes.set(uniqueName, { ...entry, pods });
    if (!entry.pods.has(uid)) this.#onChange({ ...entry, pods });
    if (!volume.attachable) this.needsNoAttach(uniqueName);
  }

  /** Its driver does without an attach by now (`CSIDriver.spec.attachRequired`). */
  needsNoAttach(uniqueName: UniqueVolumeName): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry?.attachable !== true) return;
    const changed = { ...entry, attachable: false };
    this.#volumes.set(uniqueName, changed);
    this.#onChange(changed);
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

  /** True when the pod wants at least one volume. */
  hasPod(podUID: string): boolean {
    return this.#byPod.has(podUID);
  }

  volumesOf(podUID: string): readonly DesiredVolume[] {
    return this.#byPod.namesOf(podUID).flatMap((name) => this.#volumes.get(name) ?? []);
  }

  /** Removes the pod's entries, and each volume with its last pod. */
  deletePod(podUID: string): void {
    for (const { uniqueName } of this.volumesOf(podUID)) this.#deleteEntry(uniqueName, podUID);
  }

  /** Removes the volume with the entries of all its pods. */
  deleteVolume(uniqueName: UniqueVolumeName): void {
    const entry = this.#volumes.get(uniqueName);
    for (const podUID of entry?.pods.keys() ?? []) this.#deleteEntry(uniqueName, podUID);
  }

  #deleteEntry(uniqueName: UniqueVolumeName, podUID: string): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry === undefined) return;
    const pods = new Map(entry.pods);
    pods.delete(podUID);
    this.#byPod.delete(podUID, uniqueName);
    if (pods.size === 0) this.#volumes.delete(uniqueName);
    else this.#volumes.set(uniqueName, { ...entry, pods });
    this.#onChange({ ...entry, pods });
  }
}
