/**
 * Growing a file system on the node after its volume was expanded: when the volume is mounted, or while it is. The new
 * size is written to the claim's status. Source: docs/behaviour/node-agent.md 7.6.
 */
import {
  type EventRecorder,
  involvedObject,
  type KubeClient,
  type PersistentVolumeClaim,
  type Pod,
  parseQuantity,
  resources,
  type Stored,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { mergedResizeConditions } from "../../../controllers/expand/merged-resize-conditions.ts";
import { FailedPreconditionError } from "../../../framework/node-error-kind.ts";
import {
  isNodeExpandable,
  type NodeExpandOptions,
  type VolumePlugin,
} from "../../../framework/volume-plugin.ts";

/** What the growth works with. */
export interface NodeExpandEnv {
  readonly kube: KubeClient;
  readonly events: Pick<EventRecorder, "event">;
}

/** The claim of a volume that is to be expanded was not found. */
export class ClaimMissingError extends Error {
  override readonly name = "ClaimMissingError";
}

/**
 * What became of a growth: `grown` also when there was nothing to grow; `later`: the plugin can only do so once the
 * volume is published; `refused`: not as the volume is used now.
 */
export type NodeGrowth = "grown" | "later" | "refused";

/** Grows the file system where the claim's status says less than the volume has. */
export async function expandOnNode(
  env: NodeExpandEnv,
  plugin: VolumePlugin,
  pod: Pod,
  where: Omit<NodeExpandOptions, "newSizeBytes">,
  signal: AbortSignal,
): Promise<NodeGrowth> {
  const { spec } = where;
  const volume = spec.persistentVolume;
  if (!isNodeExpandable(plugin) || volume === undefined || spec.inlineVolumeSpecForCsiMigration)
    return "grown";
  const size = volume.spec?.capacity?.storage;
  const claimRef = volume.spec?.claimRef;
  if (size === undefined || claimRef === undefined) return "grown";
  const { name = "", namespace = "" } = claimRef;
  const claim = await env.kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
  if (claim === undefined) {
    throw new ClaimMissingError(
      `PersistentVolumeClaim ${namespace}/${name} of PersistentVolume ${volume.metadata?.name} does not exist`,
    );
  }
  const had = claim.status?.capacity?.storage;
  if (had === undefined || parseQuantity(had).compare(parseQuantity(size)) >= 0) return "grown";
  const emit = (type: "Normal" | "Warning", reason: string, message: string) => {
    env.events.event(involvedObject(resources.pods, pod as Stored<Pod>), type, reason, message);
    env.events.event(involvedObject(resources.persistentVolumeClaims, claim), type, reason, message);
  };
  if (spec.readOnly) {
    emit("Warning", "FileSystemResizeFailed", "requested read-only file system");
    return "grown";
  }
  try {
    const newSizeBytes = parseQuantity(size).toBytes();
    const oldSizeBytes = parseQuantity(had).toBytes();
    if (!(await plugin.nodeExpand({ ...where, newSizeBytes, oldSizeBytes }, signal))) return "later";
  } catch (error) {
    // In use as it is, it cannot grow; that must not keep the pod from its volume.
    if (!(error instanceof FailedPreconditionError)) throw error;
    emit("Warning", "VolumeResizeFailed", errorChain(error));
    return "refused";
  }
  await finish(env.kube, claim, size, signal);
  // After the write, which a crash or a refusal repeats together with the growth: the event is about both.
  emit(
    "Normal",
    "FileSystemResizeSuccessful",
    `PersistentVolume ${volume.metadata?.name} has grown to ${size}`,
  );
  return "grown";
}

/** The claim has its new size; nothing is pending any more. */
async function finish(
  kube: KubeClient,
  claim: Stored<PersistentVolumeClaim>,
  size: string,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace = "", resourceVersion } = claim.metadata;
  const conditions = mergedResizeConditions(claim.status?.conditions ?? [], []);
  const body = {
    // A claim that changed since it was read is read again: the conditions are those of that version.
    metadata: { resourceVersion },
    status: {
      capacity: { ...claim.status?.capacity, storage: size },
      conditions: conditions.length === 0 ? null : conditions,
      allocatedResourceStatuses: { storage: null },
    },
  };
  await kube.patch(
    resources.persistentVolumeClaims,
    { name, namespace },
    { type: "merge", body },
    { signal, subresource: "status" },
  );
}
