/**
 * Which volumes pods want attached, by node. Filled pod by pod; new entries of a pod replace its old ones.
 * Source: docs/behaviour/controllers.md A3.
 */
import type { Pod, Stored } from "@longshore/kube";
import { MultiMap } from "@longshore/runtime";
import type { UniqueVolumeName } from "../../framework/unique-volume-name.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import type { CountedGauge } from "../../metrics/counted-gauge.ts";
import type { CountedVolumes } from "../../metrics/counted-volumes.ts";
import { volumePluginLabelOfName } from "../../metrics/volume-plugin-label.ts";
import type { ClaimRef } from "./build-pod-volume.ts";
import type { VolumeIdentity } from "./volume-identity.ts";

/** A volume that a pod wants attached. */
export interface WantedVolume {
  readonly kind: "wanted";
  readonly podVolumeName: string;
  readonly uniqueName: UniqueVolumeName;
  readonly identity: VolumeIdentity;
  readonly pluginName: string;
  readonly spec: VolumeSpec;
  /** The in-tree plugin that the volume is written for, if its plugin can migrate; undefined for CSI's own volumes. */
  readonly inTreePlugin: string | undefined;
  /** The unique name of its in-tree form, whichever form is wanted; undefined: it has none. */
  readonly inTreeName: UniqueVolumeName | undefined;
  /** In which state of the node's CSINode the backend was decided; undefined: there was nothing to decide. */
  readonly decidedIn: number | undefined;
}

/** A volume of a pod of which it is not known what to attach: nothing that it could be is detached. */
export interface UndecidedVolume {
  readonly kind: "undecided";
  readonly podVolumeName: string;
  readonly reason: string;
  /** Known when only the backend is undecided. */
  readonly identity: VolumeIdentity | undefined;
  readonly claim: ClaimRef | undefined;
  /** The claim's volume: undefined when unknown, empty when the claim was never bound. */
  readonly pvName: string | undefined;
  /** For a volume that cannot be translated: its in-tree plugin. */
  readonly inTreePlugin: string | undefined;
}

/** One volume of a pod. */
export type DesiredPodVolume = WantedVolume | UndecidedVolume;

/** A pod and what it wants. */
export interface DesiredPod {
  readonly pod: Stored<Pod>;
  readonly nodeName: string;
  readonly volumes: readonly DesiredPodVolume[];
}

/** A volume wanted on a node by one pod or several. */
export interface DesiredVolume {
  readonly nodeName: string;
  readonly uniqueName: UniqueVolumeName;
  readonly identity: VolumeIdentity;
  readonly pluginName: string;
  readonly spec: VolumeSpec;
  readonly inTreePlugin: string | undefined;
  readonly inTreeName: UniqueVolumeName | undefined;
  readonly pods: Map<string, Stored<Pod>>;
  multiAttachErrorReported: boolean;
  /** The pods have an event that says what the attach waits for. */
  waitReported: boolean;
}

/** The volumes that all pods want, by pod, by node and by disk. */
export class DesiredState {
  readonly #pods = new Map<string, DesiredPod>();
  readonly #nodes = new Map<string, Map<UniqueVolumeName, DesiredVolume>>();
  readonly #disks = new MultiMap<VolumeIdentity, DesiredVolume>();
  /** By node and the name of the in-tree form. */
  readonly #inTreeNames = new Map<string, Map<UniqueVolumeName, DesiredVolume>>();
  readonly #podsByNode = new MultiMap<string, string>();
  /** Pods with volumes of which it is not known what to attach. */
  readonly #undecidedByNode = new MultiMap<string, string>();
  readonly #counted: CountedVolumes | undefined;
  readonly #inUse: CountedGauge | undefined;

  /**
   * @param counted is given what comes to be wanted, and what is wanted no more
   * @param inUse the same, by node and plugin
   */
  constructor(counted?: CountedVolumes, inUse?: CountedGauge) {
    this.#counted = counted;
    this.#inUse = inUse;
  }

  /** Replaces the volumes that a pod wants; undefined: none any more. */
  setPod(key: string, desired: DesiredPod | undefined): void {
    const before = this.#pods.get(key);
    // What was reported on a volume survives its replacement: otherwise each pass would emit the event again.
    const kept = before === undefined ? undefined : this.#remove(key, before);
    if (desired === undefined || desired.volumes.length === 0) return;
    this.#pods.set(key, desired);
    this.#podsByNode.add(desired.nodeName, key);
    for (const volume of desired.volumes) {
      if (volume.kind === "wanted") this.#add(key, desired, volume, kept);
      else this.#undecidedByNode.add(desired.nodeName, key);
    }
  }

  /** The next decision on the pod decides again who attaches the disk: nothing of it is attached any more. */
  forgetDecision(key: string, identity: VolumeIdentity): void {
    const pod = this.#pods.get(key);
    if (pod === undefined) return;
    const volumes = pod.volumes.map((volume) =>
      volume.kind === "wanted" && volume.identity === identity ? { ...volume, decidedIn: undefined } : volume,
    );
    this.#pods.set(key, { ...pod, volumes });
  }

  pod(key: string): DesiredPod | undefined {
    return this.#pods.get(key);
  }

  /** Keys of the pods of a node that want anything. */
  podsOn(nodeName: string): readonly string[] {
    return this.#podsByNode.get(nodeName);
  }

  /** Keys of the pods of a node with volumes of which it is not known what to attach. */
  undecidedPodsOn(nodeName: string): readonly string[] {
    return this.#undecidedByNode.get(nodeName);
  }

  /** Keys of the pods of a node that want the disk, under whatever name. */
  podsOfDisk(nodeName: string, identity: VolumeIdentity): readonly string[] {
    return this.ofDisk(identity)
      .filter((volume) => volume.nodeName === nodeName)
      .flatMap(({ pods }) => [...pods.keys()]);
  }

  get(nodeName: string, uniqueName: UniqueVolumeName): DesiredVolume | undefined {
    return this.#nodes.get(nodeName)?.get(uniqueName);
  }

  /** The volume that pods on the node want and whose in-tree form has this name, in whichever form they want it. */
  ofInTreeName(nodeName: string, inTreeName: UniqueVolumeName): DesiredVolume | undefined {
    return this.#inTreeNames.get(nodeName)?.get(inTreeName);
  }

  /** The disk on every node on which pods want it, under every name. */
  ofDisk(identity: VolumeIdentity): readonly DesiredVolume[] {
    return this.#disks.get(identity);
  }

  /** The volumes wanted on the node. */
  on(nodeName: string): readonly DesiredVolume[] {
    return [...(this.#nodes.get(nodeName)?.values() ?? [])];
  }

  /** Every wanted volume, node by node. */
  *volumes(): Iterable<DesiredVolume> {
    for (const volumes of this.#nodes.values()) yield* volumes.values();
  }

  /** Whether any pod wants this disk on the node, under whatever name. */
  wantsIdentity(nodeName: string, identity: VolumeIdentity): boolean {
    return this.ofDisk(identity).some((volume) => volume.nodeName === nodeName);
  }

  /** Volumes of pods on the node of which it is not known what to attach. */
  *undecidedOn(nodeName: string): Iterable<UndecidedVolume> {
    for (const key of this.#undecidedByNode.get(nodeName)) {
      for (const volume of this.#pods.get(key)?.volumes ?? []) if (volume.kind === "undecided") yield volume;
    }
  }

  #add(
    key: string,
    desired: DesiredPod,
    wanted: WantedVolume,
    kept: ReadonlyMap<string, DesiredVolume> | undefined,
  ): void {
    const { nodeName } = desired;
    const { uniqueName, identity, pluginName, spec } = wanted;
    const present = this.#nodes.get(nodeName)?.get(uniqueName);
    const reported = present ?? kept?.get(uniqueName);
    const pods = present?.pods ?? new Map<string, Stored<Pod>>();
    pods.set(key, desired.pod);
    if (present !== undefined) this.#drop(present);
    this.#put({
      nodeName,
      uniqueName,
      identity,
      pluginName,
      spec,
      inTreePlugin: present?.inTreePlugin ?? wanted.inTreePlugin,
      inTreeName: present?.inTreeName ?? wanted.inTreeName,
      pods,
      multiAttachErrorReported: reported?.multiAttachErrorReported ?? false,
      waitReported: reported?.waitReported ?? false,
    });
  }

  /** @returns by their unique names the volumes that no pod wants any more */
  #remove(key: string, before: DesiredPod): ReadonlyMap<string, DesiredVolume> {
    const dropped = new Map<string, DesiredVolume>();
    this.#pods.delete(key);
    this.#podsByNode.delete(before.nodeName, key);
    this.#undecidedByNode.delete(before.nodeName, key);
    for (const wanted of before.volumes) {
      if (wanted.kind !== "wanted") continue;
      const volume = this.get(before.nodeName, wanted.uniqueName);
      volume?.pods.delete(key);
      if (volume === undefined || volume.pods.size > 0) continue;
      this.#drop(volume);
      dropped.set(wanted.uniqueName, volume);
    }
    return dropped;
  }

  #put(volume: DesiredVolume): void {
    const volumes = this.#nodes.get(volume.nodeName);
    if (volumes === undefined) this.#nodes.set(volume.nodeName, new Map([[volume.uniqueName, volume]]));
    else volumes.set(volume.uniqueName, volume);
    this.#disks.add(volume.identity, volume);
    if (volume.inTreeName !== undefined) this.#putInTreeName(volume.inTreeName, volume);
    const label = volumePluginLabelOfName(volume.uniqueName);
    this.#counted?.put("desired_state_of_world", volume, label);
    this.#inUse?.put(volume, { node: volume.nodeName, volume_plugin: label });
  }

  #putInTreeName(inTreeName: UniqueVolumeName, volume: DesiredVolume): void {
    const names = this.#inTreeNames.get(volume.nodeName);
    if (names === undefined) this.#inTreeNames.set(volume.nodeName, new Map([[inTreeName, volume]]));
    else names.set(inTreeName, volume);
  }

  /** Pods on the node that want the disk in its other form still know it by the name. */
  #dropInTreeName({ nodeName, inTreeName, identity }: DesiredVolume): void {
    if (inTreeName === undefined) return;
    const other = this.ofDisk(identity).find(
      (volume) => volume.nodeName === nodeName && volume.inTreeName === inTreeName,
    );
    if (other !== undefined) {
      this.#putInTreeName(inTreeName, other);
      return;
    }
    const names = this.#inTreeNames.get(nodeName);
    names?.delete(inTreeName);
    if (names?.size === 0) this.#inTreeNames.delete(nodeName);
  }

  #drop(volume: DesiredVolume): void {
    const volumes = this.#nodes.get(volume.nodeName);
    volumes?.delete(volume.uniqueName);
    if (volumes?.size === 0) this.#nodes.delete(volume.nodeName);
    this.#disks.delete(volume.identity, volume);
    this.#dropInTreeName(volume);
    this.#counted?.drop("desired_state_of_world", volume);
    this.#inUse?.drop(volume);
  }
}
