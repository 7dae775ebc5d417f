/**
 * The caches that a run keeps: volumes and claims, and who uses a disk now. A look at them costs no request, and they say when another one is due.
 *
 * Invariant: once a write of the run to an object of a volume has ended, no look at this volume is older than it (`seen`). The objects of
 * other volumes do not count: no two of a run share one, and workloads, which they do share, are read live.
 */
import {
  type Informer,
  isPodTerminal,
  type KubeClient,
  type KubeEnv,
  type KubeObject,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  resources,
  type Stored,
  sharedInformers,
  trackWrites,
  type VolumeAttachment,
} from "@longshore/kube";
import { type Component, withDeadline } from "@longshore/runtime";
import { uncertainVolumesOf } from "@longshore/storage";
import { uniqueNamesOf, volumeFormOf } from "../crossing/volume-form.ts";
import { claimNamesOf } from "./conversion-index.ts";
import type { PlannedVolume, VolumeObservation } from "./conversion-types.ts";

/** By which objects a volume is known. */
export type VolumeNames = Pick<PlannedVolume, "fromBefore" | "toAfter" | "claim">;

/** The objects of one volume. */
export type VolumeObjects = Pick<VolumeObservation, "from" | "to" | "claim">;

/** Finds who uses a disk. */
export interface DiskUsers extends Component {
  /** The client whose writes the caches are waited for. */
  readonly kube: KubeClient;
  /**
   * Resolves once the caches show what was written by {@link kube} to the objects of the volume.
   * @throws `StaleCacheError` after half a minute
   */
  seen(planned: VolumeNames, signal: AbortSignal): Promise<void>;
  /** Both PersistentVolumes and the claim, as the caches have them. */
  objects(planned: VolumeNames): VolumeObjects;
  /** Calls back at each event of the volume: of its objects, or of who uses its disk. Returns a function that ends this. */
  onChange(planned: VolumeNames, changed: () => void): () => void;
  /** Pods that use the claim and have not ended. */
  pods(namespace: string, claim: string): readonly Stored<Pod>[];
  /** Pods, VolumeAttachments and nodes that use or hold the disk, in words. */
  of(
    volumes: readonly PersistentVolume[],
    claim: { readonly namespace: string; readonly name: string },
  ): readonly string[];
}

/** Pods, attachments and nodes that cannot be listed in this time, in milliseconds, will not be: the log says why. */
const fillMs = 5 * 60_000;

/** Starts the caches. Resolves once they are filled. @throws DeadlineError */
export async function watchDiskUsers(env: KubeEnv, signal: AbortSignal): Promise<DiskUsers> {
  const informers = sharedInformers(env);
  const pods: Informer<Pod> = informers.of(resources.pods, {
    indexes: { claim: (pod) => claimNamesOf(pod).map((name) => `${pod.metadata.namespace}/${name}`) },
  });
  const attachments: Informer<VolumeAttachment> = informers.of(resources.volumeAttachments, {
    indexes: { volume: ({ spec }) => [spec.source.persistentVolumeName ?? ""] },
  });
  const volumes: Informer<PersistentVolume> = informers.of(resources.persistentVolumes);
  const claims: Informer<PersistentVolumeClaim> = informers.of(resources.persistentVolumeClaims);
  const nodes: Informer<Node> = informers.of(resources.nodes, { indexes: { disk: disksOf } });
  try {
    await withDeadline(env.clock, fillMs, signal, (within) => informers.synced(within));
  } catch (error) {
    await informers.stop();
    throw error;
  }
  const podsOf = (namespace: string, claim: string) =>
    pods.byIndex("claim", `${namespace}/${claim}`).filter((pod) => !isPodTerminal(pod));
  const usersOf: DiskUsers["of"] = (disks, { namespace, name }) => {
    const attached = disks.flatMap((pv) => attachments.byIndex("volume", pv.metadata?.name ?? "\0"));
    const names = new Set(disks.flatMap((pv) => uniqueNamesOf(volumeFormOf(pv))));
    return [
      ...podsOf(namespace, name).map((pod) => `Pod ${namespace}/${pod.metadata.name}`),
      ...attached.map((va) => `VolumeAttachment ${va.metadata.name} on Node ${va.spec.nodeName}`),
      ...[...names].flatMap((disk) =>
        nodes.byIndex("disk", disk).map((node) => `Node ${node.metadata.name} (${disk})`),
      ),
    ];
  };
  const { kube, ownWrites } = trackWrites(env, informers);
  const listeners = new VolumeListeners();
  listeners.follow(volumes, (pv) => [volumeKey(pv)]);
  listeners.follow(claims, ({ metadata }) => [`claim ${metadata.namespace}/${metadata.name}`]);
  listeners.follow(pods, (pod) => claimNamesOf(pod).map((name) => `claim ${pod.metadata.namespace}/${name}`));
  listeners.follow(attachments, ({ spec }) => [`volume ${spec.source.persistentVolumeName ?? ""}`]);
  listeners.follow(nodes, (node) => disksOf(node).map((disk) => `disk ${disk}`));
  return {
    kube,
    seen: (planned, within) => ownWrites.seenOf(keysOf(planned), { signal: within }),
    pods: podsOf,
    of: usersOf,
    objects: (planned) => {
      const [from, to, claim] = keysOf(planned);
      return { from: volumes.get(from.key), to: volumes.get(to.key), claim: claims.get(claim.key) };
    },
    onChange({ fromBefore, toAfter, claim }, changed) {
      const pair = [fromBefore, toAfter];
      const disks = pair.flatMap((pv) => uniqueNamesOf(volumeFormOf(pv)));
      const keys = [
        ...pair.map(volumeKey),
        `claim ${claim.namespace}/${claim.name}`,
        ...disks.map((disk) => `disk ${disk}`),
      ];
      return listeners.add(keys, changed);
    },
    stop: () => informers.stop(),
  };
}

/** What a run writes of a volume, as the caches have it. */
function keysOf({ fromBefore, toAfter, claim }: VolumeNames) {
  return [
    { resource: resources.persistentVolumes, key: fromBefore.metadata?.name ?? "" },
    { resource: resources.persistentVolumes, key: toAfter.metadata?.name ?? "" },
    { resource: resources.persistentVolumeClaims, key: `${claim.namespace}/${claim.name}` },
  ] as const;
}

const volumeKey = ({ metadata }: PersistentVolume): string => `volume ${metadata?.name}`;

/** Who wants to know of events, by what they are about: an event costs the same however many volumes a run has. */
class VolumeListeners {
  readonly #byKey = new Map<string, Set<() => void>>();

  follow<T extends KubeObject>(
    informer: Informer<T>,
    keysOf: (object: Stored<T>) => readonly string[],
  ): void {
    const changed = (...objects: readonly Stored<T>[]) => {
      for (const key of new Set(objects.flatMap(keysOf)))
        for (const listener of this.#byKey.get(key) ?? []) listener();
    };
    informer.onChange({
      added: (object) => changed(object),
      updated: changed,
      deleted: (object) => changed(object),
    });
  }

  add(keys: readonly string[], listener: () => void): () => void {
    for (const key of keys) {
      const listeners = this.#byKey.get(key) ?? new Set();
      this.#byKey.set(key, listeners.add(listener));
    }
    return () => {
      for (const key of keys) {
        const listeners = this.#byKey.get(key);
        listeners?.delete(listener);
        if (listeners?.size === 0) this.#byKey.delete(key);
      }
    };
  }
}

function disksOf(node: Stored<Node>): string[] {
  const attached = (node.status?.volumesAttached ?? []).map(({ name }) => name);
  return [...new Set([...(node.status?.volumesInUse ?? []), ...attached, ...uncertainVolumesOf(node)])];
}
