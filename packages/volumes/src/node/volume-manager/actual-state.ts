/**
 * What is mounted, or may be. Source: docs/behaviour/node-agent.md 5.
 *
 *   device and pod mount:   not mounted ──uncertain error──▶ uncertain ──success──▶ mounted
 *                                ◀────────final error──────────┘ ◀──unmount begins──┘
 *
 * Invariants
 *  - What may be mounted is in here: an entry goes only after a certain unmount.
 *  - "Mounted" is never downgraded by the error of a mount. An unmount that has begun may have taken effect,
 *    whatever its answer: from then on the mount is uncertain.
 *  - Entries are values: a change replaces the entry, and shares what did not change.
 */

import { type NodeErrorKind, nodeErrorKind } from "../../framework/node-error-kind.ts";
import type { UniqueVolumeName } from "../../framework/unique-volume-name.ts";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { VolumesByPod } from "./volumes-by-pod.ts";

/** How sure it is that something is mounted. */
export type MountState = "notMounted" | "uncertain" | "mounted";

/** A pod's mount of a volume; one that is not mounted for certain has no entry. */
export interface ActualPod {
  readonly podUID: string;
  /** Name of the volume's directory in the pod. */
  readonly volumeName: string;
  readonly state: "uncertain" | "mounted";
  readonly path: string;
  readonly readOnly: boolean;
  /** The pod has it as a device: it is mapped, not mounted. */
  readonly isBlock?: boolean;
}

/** What a volume's pods share on the node: its device. */
export interface ActualDevice {
  readonly state: MountState;
  /** The global mount; of a block volume its directory of mappings. */
  readonly path: string;
  /** Set for a block volume. */
  readonly block?: BlockDevice;
}

/** What is known of a block volume's device besides its place. */
export interface BlockDevice {
  /** The name of the volume that the device is torn down by. */
  readonly volumeName: string;
  /** What setting it up returned; empty where that is not known. */
  readonly devicePath: string;
}

/** A volume on this node. */
export interface ActualVolume {
  readonly uniqueName: UniqueVolumeName;
  readonly spec: VolumeSpec;
  readonly plugin: VolumePlugin;
  /** Belongs into `volumesInUse`. */
  readonly attachable: boolean;
  /** The in-tree plugin it came from by translation, or its own; undefined also when not known. */
  readonly origin: string | undefined;
  /** The controller has confirmed the attachment to this agent since it started. */
  readonly attachVerified: boolean;
  readonly devicePath: string;
  readonly device: ActualDevice;
  readonly pods: ReadonlyMap<string, ActualPod>;
}

/** A mount of a volume in a pod, without how sure it is. */
export type PodMount = Omit<ActualPod, "state">;

/** What a change of the actual state concerns. */
export interface ActualChange {
  readonly uniqueName: UniqueVolumeName;
  readonly origin: string | undefined;
  /** Undefined: the volume itself or its device. */
  readonly podUID: string | undefined;
}

/** The state after a failed mount, by the table in docs/behaviour/node-agent.md 5. */
export function stateAfterError(current: MountState, kind: NodeErrorKind): MountState {
  if (kind === "final" && current === "uncertain") return "notMounted";
  if (kind === "uncertain" && current === "notMounted") return "uncertain";
  return current;
}

/** The actual state of the node's volumes. */
export class ActualState {
  readonly #volumes = new Map<UniqueVolumeName, ActualVolume>();
  readonly #byPod = new VolumesByPod();
  readonly #onChange: (change: ActualChange) => void;

  /** @param onChange called after each change of what is or may be mounted; must not throw */
  constructor(onChange: (change: ActualChange) => void = () => {}) {
    this.#onChange = onChange;
  }

  get(uniqueName: UniqueVolumeName): ActualVolume | undefined {
    return this.#volumes.get(uniqueName);
  }

  volumes(): Iterable<ActualVolume> {
    return this.#volumes.values();
  }

  podOf(uniqueName: UniqueVolumeName, podUID: string): ActualPod | undefined {
    return this.#volumes.get(uniqueName)?.pods.get(podUID);
  }

  /** True when any volume is or may be mounted for the pod. */
  hasPod(podUID: string): boolean {
    return this.#byPod.has(podUID);
  }

  /** Unique names of the volumes that are or may be mounted for the pod. */
  namesOf(podUID: string): readonly UniqueVolumeName[] {
    return this.#byPod.namesOf(podUID);
  }

  /** Every pod that something is or may be mounted for. */
  podUIDs(): readonly string[] {
    return this.#byPod.podUIDs();
  }

  /** The volume is attached, as the controller says. A spec found on disk is replaced: it is good for unmounting only. */
  markAttached(
    volume: Pick<ActualVolume, "uniqueName" | "spec" | "plugin" | "attachable" | "origin">,
    devicePath: string,
  ): void {
    const { spec, origin } = volume;
    this.#set({ ...this.#entryOf(volume), spec, origin, attachVerified: true, devicePath });
  }

  /** Whether the volume is attached, and where, is to be confirmed before it is next mounted. */
  doubtAttachment(uniqueName: UniqueVolumeName): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry !== undefined) this.#set({ ...entry, attachVerified: false });
  }

  /** Adds a volume found on disk at start: it may be mounted, and its attachment is not confirmed. */
  restore(
    volume: Pick<ActualVolume, "uniqueName" | "spec" | "plugin" | "attachable">,
    found: { readonly device?: Omit<ActualDevice, "state">; readonly pod?: PodMount },
  ): void {
    const { pod } = found;
    const entry = this.#entryOf({ ...volume, origin: undefined });
    const device =
      found.device === undefined ? entry.device : { ...found.device, state: "uncertain" as const };
    this.#set({ ...entry, device });
    if (pod !== undefined) this.#setPod(volume.uniqueName, { ...pod, state: "uncertain" });
  }

  markDeviceMounted(uniqueName: UniqueVolumeName, path: string, block?: BlockDevice): void {
    this.#setDevice(uniqueName, deviceOf("mounted", path, block));
  }

  /** The device may be mounted: it is, but is not ready for use, or its unmount has begun. */
  markDeviceUncertain(uniqueName: UniqueVolumeName, path: string, block?: BlockDevice): void {
    this.#setDevice(uniqueName, deviceOf("uncertain", path, block));
  }

  markDeviceUnmounted(uniqueName: UniqueVolumeName): void {
    this.#setDevice(uniqueName, { state: "notMounted", path: "" });
  }

  deviceMountFailed(uniqueName: UniqueVolumeName, path: string, error: unknown, block?: BlockDevice): void {
    const current = this.#volumes.get(uniqueName)?.device.state ?? "notMounted";
    this.#setDevice(uniqueName, deviceOf(stateAfterError(current, nodeErrorKind(error)), path, block));
  }

  markPodMounted(uniqueName: UniqueVolumeName, pod: PodMount): void {
    this.#setPod(uniqueName, { ...pod, state: "mounted" });
  }

  /** The volume may be mounted for the pod: it is, but is not ready for use, or its unmount has begun. */
  markPodUncertain(uniqueName: UniqueVolumeName, pod: PodMount): void {
    this.#setPod(uniqueName, { ...pod, state: "uncertain" });
  }

  podMountFailed(uniqueName: UniqueVolumeName, pod: PodMount, error: unknown): void {
    const current = this.podOf(uniqueName, pod.podUID)?.state ?? "notMounted";
    const next = stateAfterError(current, nodeErrorKind(error));
    if (next === "notMounted") this.markPodUnmounted(uniqueName, pod.podUID);
    else this.#setPod(uniqueName, { ...pod, state: next });
  }

  markPodUnmounted(uniqueName: UniqueVolumeName, podUID: string): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry?.pods.has(podUID) !== true) return;
    const pods = new Map(entry.pods);
    pods.delete(podUID);
    this.#byPod.delete(podUID, uniqueName);
    this.#set({ ...entry, pods }, podUID);
  }

  /** Forgets the volume; only for one that is certainly not mounted. */
  delete(uniqueName: UniqueVolumeName): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry === undefined) return;
    this.#volumes.delete(uniqueName);
    this.#onChange({ uniqueName, origin: entry.origin, podUID: undefined });
  }

  #setDevice(uniqueName: UniqueVolumeName, device: ActualVolume["device"]): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry !== undefined) this.#set({ ...entry, device });
  }

  #setPod(uniqueName: UniqueVolumeName, pod: ActualPod): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry === undefined) return;
    this.#byPod.add(pod.podUID, uniqueName);
    this.#set({ ...entry, pods: new Map(entry.pods).set(pod.podUID, pod) }, pod.podUID);
  }

  #set(entry: ActualVolume, podUID?: string): void {
    const { uniqueName, origin } = entry;
    const before = this.#volumes.get(uniqueName);
    this.#volumes.set(uniqueName, entry);
    if (isChanged(before, entry, podUID)) this.#onChange({ uniqueName, origin, podUID });
  }

  #entryOf(
    volume: Pick<ActualVolume, "uniqueName" | "spec" | "plugin" | "attachable" | "origin">,
  ): ActualVolume {
    const device = { state: "notMounted" as const, path: "" };
    const { uniqueName, spec, plugin, attachable, origin } = volume;
    const fresh = { uniqueName, spec, plugin, attachable, origin };
    return (
      this.#volumes.get(uniqueName) ?? {
        ...fresh,
        attachVerified: false,
        devicePath: "",
        device,
        pods: new Map(),
      }
    );
  }
}

function deviceOf(state: MountState, path: string, block: BlockDevice | undefined): ActualDevice {
  return { state, path, ...(block !== undefined && { block }) };
}

/** Whether anything that others follow differs: the volume, or what is sure about its device or the pod's mount. */
function isChanged(
  before: ActualVolume | undefined,
  after: ActualVolume,
  podUID: string | undefined,
): boolean {
  if (before === undefined || before.origin !== after.origin) return true;
  if (podUID === undefined) return before.device.state !== after.device.state;
  return before.pods.get(podUID)?.state !== after.pods.get(podUID)?.state;
}
