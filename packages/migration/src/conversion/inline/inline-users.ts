/** Who uses the disks of templates now: caches of pods, attachments and nodes that a run keeps, so that a look costs few requests. */
import {
  type Informer,
  isPodTerminal,
  type KubeEnv,
  type Node,
  type PersistentVolume,
  type Pod,
  resources,
  type Stored,
  sharedInformers,
  type VolumeAttachment,
} from "@longshore/kube";
import { type Component, withDeadline } from "@longshore/runtime";
import { uncertainVolumesOf } from "@longshore/storage";
import { diskKeyOf } from "../../crossing/disk-key.ts";
import { claimNamesOf } from "../conversion-index.ts";
import { inlineDiskKey, inlineDiskNames } from "./inline-disks.ts";
import type { PlannedTemplate, TemplateVolume } from "./inline-types.ts";

/** Finds who uses the disks of a template. */
export interface InlineUsers extends Component {
  /** Pods, VolumeAttachments and nodes, in words; of `claims` those that come by the claims. */
  of(planned: PlannedTemplate): { readonly all: readonly string[]; readonly claims: readonly string[] };
}

/** What cannot be listed in this time, in milliseconds, will not be: the log says why. */
const fillMs = 5 * 60_000;

/** Starts the caches. Resolves once they are filled. @throws DeadlineError */
export async function watchInlineUsers(env: KubeEnv, signal: AbortSignal): Promise<InlineUsers> {
  const informers = sharedInformers(env);
  const pods: Informer<Pod> = informers.of(resources.pods, {
    indexes: { disk: disksOfPod, claim: claimsOfPod },
  });
  const attachments: Informer<VolumeAttachment> = informers.of(resources.volumeAttachments, {
    indexes: { disk: diskOfAttachment, volume: ({ spec }) => [spec.source.persistentVolumeName ?? ""] },
  });
  const nodes: Informer<Node> = informers.of(resources.nodes, { indexes: { disk: disksOfNode } });
  try {
    await withDeadline(env.clock, fillMs, signal, (within) => informers.synced(within));
  } catch (error) {
    await informers.stop();
    throw error;
  }
  const alive = (found: readonly Stored<Pod>[]) =>
    found
      .filter((pod) => !isPodTerminal(pod))
      .map((pod) => `Pod ${pod.metadata.namespace}/${pod.metadata.name}`);
  const words = (found: readonly Stored<VolumeAttachment>[]) =>
    found.map(({ metadata, spec }) => `VolumeAttachment ${metadata.name} on Node ${spec.nodeName}`);
  return {
    of({ workload: { namespace }, volumes }) {
      const claims = volumes.flatMap(({ claim, volume }) => [
        ...alive(pods.byIndex("claim", `${namespace}/${claim.metadata?.name}`)),
        ...words(attachments.byIndex("volume", volume.metadata?.name ?? "\0")),
      ]);
      const inline = volumes.flatMap(({ before, volume }) => {
        const key = inlineDiskKey(before, namespace) ?? "\0";
        return [
          ...alive(pods.byIndex("disk", key)),
          ...words(attachments.byIndex("disk", key)),
          ...inlineDiskNames(before, volume).flatMap((name) =>
            nodes.byIndex("disk", name).map((node) => `Node ${node.metadata.name} (${name})`),
          ),
        ];
      });
      return { all: [...new Set([...claims, ...inline])], claims: [...new Set(claims)] };
    },
    stop: () => informers.stop(),
  };
}

/** Disks that the pod itself describes. */
export function disksOfPod({ metadata, spec }: Stored<Pod>): string[] {
  const volumes = (spec?.volumes ?? []) as readonly TemplateVolume[];
  return volumes.flatMap((volume) => inlineDiskKey(volume, metadata.namespace ?? "") ?? []);
}

const claimsOfPod = (pod: Stored<Pod>): string[] =>
  claimNamesOf(pod).map((name) => `${pod.metadata.namespace}/${name}`);

/** Of an inline volume: its attachment holds the translated PersistentVolume's spec (storage/v1). */
function diskOfAttachment({ spec }: Stored<VolumeAttachment>): string[] {
  const inline = spec.source.inlineVolumeSpec;
  if (inline == null) return [];
  const key = diskKeyOf({ spec: inline } as PersistentVolume);
  return key === undefined ? [] : [key];
}

function disksOfNode(node: Stored<Node>): string[] {
  const attached = (node.status?.volumesAttached ?? []).map(({ name }) => name);
  return [...new Set([...(node.status?.volumesInUse ?? []), ...attached, ...uncertainVolumesOf(node)])];
}
