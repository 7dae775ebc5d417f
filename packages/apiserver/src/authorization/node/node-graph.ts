/**
 * Which node needs which object: from the pods that are bound to it, through their claims and volumes to Secrets.
 *
 * Invariants
 *  - The graph follows the tables of pods and volumes change by change; nothing is searched when it is asked.
 *  - What it says comes from the API objects alone: a node gets nothing by naming it itself, except through a pod
 *    that is bound to it.
 */
import type { Stored } from "@longshore/kube";
import { FollowedTable } from "../../storage/followed-table.ts";
import { keyOf, type Store } from "../../storage/store.ts";
import { type Reference, referencesOfPod, secretsOfVolume } from "./pod-references.ts";

interface PodLike extends Stored {
  readonly spec?: { readonly nodeName?: string };
}

interface VolumeLike extends Stored {
  readonly spec?: { readonly claimRef?: { readonly namespace?: string; readonly name?: string } };
}

interface AttachmentLike extends Stored {
  readonly spec?: { readonly nodeName?: string };
}

/** A pod that the kubelet has made known itself: its node gets nothing through it. */
const mirrorAnnotation = "kubernetes.io/config.mirror";

const referenceKey = (reference: Reference) =>
  `${reference.table} ${keyOf(reference.namespace, reference.name)}`;

/** Answers which node needs an object, from pods, claims and volumes. */
export class NodeGraph {
  readonly #store: Store;
  readonly #followed: readonly FollowedTable[];
  /** How many pods of each node name an object, by the object. */
  readonly #nodesOf = new Map<string, Map<string, number>>();
  /** The volumes whose Secret it is, by the Secret. */
  readonly #volumesOf = new Map<string, Set<string>>();

  constructor(store: Store) {
    this.#store = store;
    this.#followed = [
      new FollowedTable(store, "pods", (_key, pod, previous) => {
        if (previous !== undefined) this.#count(previous, -1);
        if (pod !== undefined) this.#count(pod, 1);
      }),
      new FollowedTable(store, "persistentvolumes", (_key, volume, previous) => {
        if (previous !== undefined) this.#noteSecrets(previous, false);
        if (volume !== undefined) this.#noteSecrets(volume, true);
      }),
    ];
  }

  /** True when a pod of the node names the object, or for a Secret: one of its volumes. */
  needs(node: string, reference: Reference): boolean {
    this.#catchUp();
    const key = referenceKey(reference);
    if (this.#nodesOf.get(key)?.has(node) === true) return true;
    for (const name of this.#volumesOf.get(key) ?? []) if (this.#needsVolume(node, name)) return true;
    return false;
  }

  /** True when a claim of a pod of the node is bound to the volume. */
  needsVolume(node: string, name: string): boolean {
    this.#catchUp();
    return this.#needsVolume(node, name);
  }

  /** True when the attachment is to the node. */
  isAttachedTo(node: string, name: string): boolean {
    const table = this.#store.table("volumeattachments.storage.k8s.io");
    return (table.get("", name) as AttachmentLike | undefined)?.spec?.nodeName === node;
  }

  /** True when the pod is bound to the node. */
  runs(node: string, namespace: string, name: string): boolean {
    return (this.#store.table("pods").get(namespace, name) as PodLike | undefined)?.spec?.nodeName === node;
  }

  #needsVolume(node: string, name: string): boolean {
    const volume = this.#store.table("persistentvolumes").get("", name) as VolumeLike | undefined;
    const claim = volume?.spec?.claimRef;
    if (claim?.name === undefined) return false;
    const reference = {
      table: "persistentvolumeclaims",
      namespace: claim.namespace ?? "",
      name: claim.name,
    } as const;
    return this.#nodesOf.get(referenceKey(reference))?.has(node) === true;
  }

  #catchUp(): void {
    for (const table of this.#followed) table.catchUp();
  }

  #count(object: Stored, by: 1 | -1): void {
    const node = (object as PodLike).spec?.nodeName ?? "";
    if (node === "" || object.metadata.annotations?.[mirrorAnnotation] !== undefined) return;
    for (const reference of referencesOfPod(object)) {
      const key = referenceKey(reference);
      const nodes = this.#nodesOf.get(key) ?? new Map<string, number>();
      const count = (nodes.get(node) ?? 0) + by;
      if (count > 0) nodes.set(node, count);
      else nodes.delete(node);
      if (nodes.size > 0) this.#nodesOf.set(key, nodes);
      else this.#nodesOf.delete(key);
    }
  }

  #noteSecrets(volume: Stored, isThere: boolean): void {
    for (const reference of secretsOfVolume(volume)) {
      const key = referenceKey(reference);
      const volumes = this.#volumesOf.get(key) ?? new Set<string>();
      if (isThere) volumes.add(volume.metadata.name);
      else volumes.delete(volume.metadata.name);
      if (volumes.size > 0) this.#volumesOf.set(key, volumes);
      else this.#volumesOf.delete(key);
    }
  }
}
