/**
 * What is mounted, or may be. Source: docs/behaviour/node-agent.md 5.
 *
 *   device and pod mount:   not mounted ──uncertain error──▶ uncertain ──success──▶ mounted
 *                                ◀────────final error──────────┘
 *
 * Invariants
 *  - What may be mounted is in here: an entry goes only after a certain unmount.
 *  - "Mounted" is never downgraded by an error.
 */
import type { UniqueVolumeName } from "../../framework/names.ts";
import { type NodeErrorKind, nodeErrorKind } from "../../framework/node-errors.ts";
import type { VolumePlugin } from "../../framework/plugin.ts";
import type { VolumeSpec } from "../../framework/spec.ts";

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
  readonly device: { readonly state: MountState; readonly path: string };
  readonly pods: ReadonlyMap<string, ActualPod>;
}

interface Entry extends Omit<ActualVolume, "attachVerified" | "devicePath" | "device" | "spec" | "origin"> {
  spec: VolumeSpec;
  origin: string | undefined;
  attachVerified: boolean;
  devicePath: string;
  device: { readonly state: MountState; readonly path: string };
  readonly pods: Map<string, ActualPod>;
}

/** The state after a failed mount, by the table in docs/behaviour/node-agent.md 5. */
export function stateAfterError(current: MountState, kind: NodeErrorKind): MountState {
  if (kind === "final" && current === "uncertain") return "notMounted";
  if (kind === "uncertain" && current === "notMounted") return "uncertain";
  return current;
}

/** The actual state of the node's volumes. */
export class ActualState {
  readonly #volumes = new Map<UniqueVolumeName, Entry>();

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
    return [...this.#volumes.values()].some((volume) => volume.pods.has(podUID));
  }

  /** Every pod that something is or may be mounted for. */
  podUIDs(): ReadonlySet<string> {
    return new Set([...this.#volumes.values()].flatMap((volume) => [...volume.pods.keys()]));
  }

  /** The volume is attached, as the controller says. Of a known volume only the device path changes. */
  markAttached(
    volume: Pick<ActualVolume, "uniqueName" | "spec" | "plugin" | "attachable" | "origin">,
    devicePath: string,
  ): void {
    const entry = this.#ensure(volume);
    // A spec found on disk is good for unmounting only; this one is complete.
    entry.spec = volume.spec;
    entry.origin = volume.origin;
    entry.attachVerified = true;
    entry.devicePath = devicePath;
  }

  /** Adds a volume found on disk at start: it may be mounted, and its attachment is not confirmed. */
  restore(
    volume: Pick<ActualVolume, "uniqueName" | "spec" | "plugin" | "attachable">,
    found: {
      readonly devicePath?: string;
      readonly deviceMountPath?: string;
      readonly pod?: Omit<ActualPod, "state">;
    },
  ): void {
    const entry = this.#ensure({ ...volume, origin: undefined });
    if (found.deviceMountPath !== undefined)
      entry.device = { state: "uncertain", path: found.deviceMountPath };
    if (found.pod !== undefined) entry.pods.set(found.pod.podUID, { ...found.pod, state: "uncertain" });
  }

  markDeviceMounted(uniqueName: UniqueVolumeName, path: string): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry !== undefined) entry.device = { state: "mounted", path };
  }

  markDeviceUnmounted(uniqueName: UniqueVolumeName): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry !== undefined) entry.device = { state: "notMounted", path: "" };
  }

  deviceMountFailed(uniqueName: UniqueVolumeName, path: string, error: unknown): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry === undefined) return;
    entry.device = { state: stateAfterError(entry.device.state, nodeErrorKind(error)), path };
  }

  markPodMounted(uniqueName: UniqueVolumeName, pod: Omit<ActualPod, "state">): void {
    this.#volumes.get(uniqueName)?.pods.set(pod.podUID, { ...pod, state: "mounted" });
  }

  podMountFailed(uniqueName: UniqueVolumeName, pod: Omit<ActualPod, "state">, error: unknown): void {
    const entry = this.#volumes.get(uniqueName);
    if (entry === undefined) return;
    const current = entry.pods.get(pod.podUID)?.state ?? "notMounted";
    const next = stateAfterError(current, nodeErrorKind(error));
    if (next === "notMounted") entry.pods.delete(pod.podUID);
    else entry.pods.set(pod.podUID, { ...pod, state: next });
  }

  markPodUnmounted(uniqueName: UniqueVolumeName, podUID: string): void {
    this.#volumes.get(uniqueName)?.pods.delete(podUID);
  }

  /** Forgets the volume; only for one that is certainly not mounted. */
  delete(uniqueName: UniqueVolumeName): void {
    this.#volumes.delete(uniqueName);
  }

  #ensure(volume: Pick<ActualVolume, "uniqueName" | "spec" | "plugin" | "attachable" | "origin">): Entry {
    const { uniqueName, spec, plugin, attachable, origin } = volume;
    let entry = this.#volumes.get(uniqueName);
    if (entry === undefined) {
      entry = {
        uniqueName,
        spec,
        plugin,
        attachable,
        origin,
        attachVerified: false,
        devicePath: "",
        device: { state: "notMounted", path: "" },
        pods: new Map(),
      };
      this.#volumes.set(uniqueName, entry);
    }
    return entry;
  }
}
