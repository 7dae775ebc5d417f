/**
 * Which volumes pods want attached, by node. Filled pod by pod; new entries of a pod replace its old ones.
 * Source: docs/behaviour/controllers.md A3.
 */
import type { Pod, Stored } from "@longshore/kube";
import type { UniqueVolumeName } from "../../framework/names.ts";
import type { VolumeSpec } from "../../framework/spec.ts";
import type { ClaimRef } from "./pod-volume-spec.ts";
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
export type PodWish = WantedVolume | UndecidedVolume;

/** A pod and what it wants. */
export interface PodWishes {
  readonly pod: Stored<Pod>;
  readonly nodeName: string;
  readonly wishes: readonly PodWish[];
}

/** A volume wanted on a node by one pod or several. */
export interface DesiredVolume {
  readonly nodeName: string;
  readonly uniqueName: UniqueVolumeName;
  readonly identity: VolumeIdentity;
  readonly pluginName: string;
  readonly spec: VolumeSpec;
  readonly inTreePlugin: string | undefined;
  readonly pods: Map<string, Stored<Pod>>;
  multiAttachErrorReported: boolean;
  /** The pods have an event that says what the attach waits for. */
  waitReported: boolean;
}

/** The volumes that all pods want. */
export class DesiredState {
  readonly #pods = new Map<string, PodWishes>();
  readonly #nodes = new Map<string, Map<UniqueVolumeName, DesiredVolume>>();
  readonly #podsByNode = new Map<string, Set<string>>();

  /** Replaces the volumes that a pod wants; undefined: none any more. */
  setPod(key: string, wishes: PodWishes | undefined): void {
    const before = this.#pods.get(key);
    const kept = new Map<string, DesiredVolume>();
    if (before !== undefined) this.#remove(key, before, kept);
    if (wishes === undefined || wishes.wishes.length === 0) return;
    this.#pods.set(key, wishes);
    addTo(this.#podsByNode, wishes.nodeName, key);
    for (const wish of wishes.wishes) if (wish.kind === "wanted") this.#add(key, wishes, wish, kept);
  }

  pod(key: string): PodWishes | undefined {
    return this.#pods.get(key);
  }

  /** Keys of the pods of a node that want anything. */
  podsOn(nodeName: string): readonly string[] {
    return [...(this.#podsByNode.get(nodeName) ?? [])];
  }

  get(nodeName: string, uniqueName: UniqueVolumeName): DesiredVolume | undefined {
    return this.#nodes.get(nodeName)?.get(uniqueName);
  }

  /** Every wanted volume, node by node. */
  *volumes(): Iterable<DesiredVolume> {
    for (const volumes of this.#nodes.values()) yield* volumes.values();
  }

  /** Whether any pod wants this disk on the node, under whatever name. */
  wantsIdentity(nodeName: string, identity: VolumeIdentity): boolean {
    for (const volume of this.#nodes.get(nodeName)?.values() ?? []) {
      if (volume.identity === identity) return true;
    }
    return false;
  }

  /** Volumes of pods on the node of which it is not known what to attach. */
  *undecidedOn(nodeName: string): Iterable<UndecidedVolume> {
    for (const key of this.#podsByNode.get(nodeName) ?? []) {
      for (const wish of this.#pods.get(key)?.wishes ?? []) if (wish.kind === "undecided") yield wish;
    }
  }

  #add(key: string, wishes: PodWishes, wish: WantedVolume, kept: Map<string, DesiredVolume>): void {
    let volumes = this.#nodes.get(wishes.nodeName);
    if (volumes === undefined) {
      volumes = new Map();
      this.#nodes.set(wishes.nodeName, volumes);
    }
    const present = volumes.get(wish.uniqueName);
    const reported = present ?? kept.get(wish.uniqueName);
    const pods = present?.pods ?? new Map<string, Stored<Pod>>();
    pods.set(key, wishes.pod);
    volumes.set(wish.uniqueName, {
      nodeName: wishes.nodeName,
      uniqueName: wish.uniqueName,
      identity: wish.identity,
      pluginName: wish.pluginName,
      spec: wish.spec,
      inTreePlugin: present?.inTreePlugin ?? wish.inTreePlugin,
      pods,
      multiAttachErrorReported: reported?.multiAttachErrorReported ?? false,
      waitReported: reported?.waitReported ?? false,
    });
  }

  #remove(key: string, before: PodWishes, kept: Map<string, DesiredVolume>): void {
    this.#pods.delete(key);
    removeFrom(this.#podsByNode, before.nodeName, key);
    const volumes = this.#nodes.get(before.nodeName);
    for (const wish of before.wishes) {
      if (wish.kind !== "wanted") continue;
      const volume = volumes?.get(wish.uniqueName);
      volume?.pods.delete(key);
      if (volume === undefined || volume.pods.size > 0) continue;
      volumes?.delete(wish.uniqueName);
      kept.set(wish.uniqueName, volume);
    }
    if (volumes?.size === 0) this.#nodes.delete(before.nodeName);
  }
}

function addTo(index: Map<string, Set<string>>, at: string, value: string): void {
  const values = index.get(at);
  if (values === undefined) index.set(at, new Set([value]));
  else values.add(value);
}

function removeFrom(index: Map<string, Set<string>>, at: string, value: string): void {
  const values = index.get(at);
  values?.delete(value);
  if (values?.size === 0) index.delete(at);
}
