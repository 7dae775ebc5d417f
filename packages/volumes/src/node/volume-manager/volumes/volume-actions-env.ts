/** What the actions on volumes work with. */
import { type EventRecorder, type KubeClient, type Node, resources } from "@longshore/kube";
import type { KeyedLock, RuntimeEnv } from "@longshore/runtime";
import type { StorageOperations } from "../../../metrics/storage-operations.ts";
import type { ActualState } from "../actual-state.ts";
import type { DesiredState } from "../desired-state.ts";
import type { NodePods } from "../pods/node-pods.ts";
import type { VolumePaths } from "../volume-paths.ts";
import type { MountsInFlight } from "./mounts-in-flight.ts";
import type { Remounts } from "./remounts.ts";
import type { Republications } from "./republications.ts";
import { VolumeOperationError, type VolumePlaces } from "./volume-places.ts";
import type { VolumeRecords } from "./volume-records.ts";
import type { VolumeSizes } from "./volume-sizes.ts";

/** States, seams and what other parts of the agent know. */
export interface VolumeActionsEnv extends RuntimeEnv, VolumePlaces {
  readonly kube: KubeClient;
  readonly nodeName: string;
  readonly events: Pick<EventRecorder, "event">;
  readonly desired: DesiredState;
  readonly actual: ActualState;
  readonly pods: NodePods;
  readonly paths: VolumePaths;
  readonly records: VolumeRecords;
  readonly measured: StorageOperations;
  readonly mounts: MountsInFlight;
  readonly remounts: Remounts;
  readonly sizes: VolumeSizes;
  readonly republications: Republications;
  /** Volumes whose attachment is being confirmed right now: they are about to be in the actual state. */
  readonly verifying: Set<string>;
  /** Held while something is mounted or unmounted at a place. */
  readonly places: KeyedLock;
  /** This node as last seen, from a cache; a hint only. */
  readonly cachedNode: () => Node | undefined;
  /** Whether the stored `volumesInUse` names the volume, for certain. */
  readonly isReportedInUse: (uniqueName: string) => boolean;
  /** The stored `volumesInUse` was found not to name the volume, whatever was stored before. */
  readonly foundNotInUse: (uniqueName: string) => void;
  /** A volume is neither wanted nor here any more. */
  readonly onVolumeForgotten: (uniqueName: string) => void;
  /** An operation ended: who waits for the pod's volumes should look. */
  readonly onOperationEnd: (podUID: string) => void;
}

/** This node, by a live GET. @throws VolumeOperationError when it does not exist */
export async function getNode(
  env: Pick<VolumeActionsEnv, "kube" | "nodeName">,
  signal: AbortSignal,
): Promise<Node> {
  const node = await env.kube.get(resources.nodes, { name: env.nodeName }, { signal });
  if (node === undefined) throw new VolumeOperationError(`Node ${env.nodeName} does not exist: register it`);
  return node;
}
