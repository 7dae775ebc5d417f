/** Who uses a disk now: caches of pods, attachments and nodes that a run keeps, so that a look costs no request. */
import {
  type Informer,
  isPodTerminal,
  type KubeEnv,
  type KubeObject,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  resources,
  type Stored,
  sharedInformers,
  type VolumeAttachment,
} from "@longshore/kube";
import { type Component, withDeadline } from "@longshore/runtime";
import { uncertainVolumesOf } from "@longshore/storage";
import { uniqueNamesOf, volumeFormOf } from "../crossing/volume-form.ts";
import { claimNamesOf } from "./conversion-index.ts";
import type { PlannedVolume } from "./conversion-types.ts";

/** Finds who uses a disk. */
export interface DiskUsers extends Component {
  /** Differs once something of the volume has changed: its objects, or who uses its disk. */
  state(planned: Pick<PlannedVolume, "fromBefore" | "toAfter" | "claim">): string;
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
  const volumes: Informer<PersistentVolume> = informers.of(resources.persistentVolumes, {
    transform: headOf,
  });
  const claims: Informer<PersistentVolumeClaim> = informers.of(resources.persistentVolumeClaims, {
    transform: headOf,
  });
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
  return {
    pods: podsOf,
    of: usersOf,
    state({ fromBefore, toAfter, claim }) {
      const pair = [fromBefore, toAfter];
      const seen = [
        ...pair.map(({ metadata }) => volumes.get(metadata?.name ?? "")),
        claims.get(`${claim.namespace}/${claim.name}`),
      ];
      const versions = seen.map((object) => object?.metadata.resourceVersion ?? "");
      return JSON.stringify([versions, usersOf(pair, claim)]);
    },
    stop: () => informers.stop(),
  };
}

/** The version is all that is needed of it. */
function headOf<T extends KubeObject>({ metadata }: Stored<T>): Stored<T> {
  const { name, uid, resourceVersion } = metadata;
  const namespace = metadata.namespace === undefined ? {} : { namespace: metadata.namespace };
  return { metadata: { name, uid, resourceVersion, ...namespace } } as Stored<T>;
}

function disksOf(node: Stored<Node>): string[] {
  const attached = (node.status?.volumesAttached ?? []).map(({ name }) => name);
  return [...new Set([...(node.status?.volumesInUse ?? []), ...attached, ...uncertainVolumesOf(node)])];
}
