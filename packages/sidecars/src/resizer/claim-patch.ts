/**
 * What is stored about the expansion of a claim: bodies of merge patches of its status, pure. Each names the version
 * it was made from, so that a claim which changed meanwhile is looked at again. Source: docs/behaviour/sidecars.md 4.
 */
import type { PersistentVolumeClaim, PersistentVolumeClaimCondition, Stored } from "@longshore/kube";
import { nodeExpansionNotRequiredAnnotation } from "@longshore/storage";
import { condition, mergedConditions, resizeConditions } from "./merged-conditions.ts";
import { stateOf } from "./resize-goal.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** The body of a merge patch of `persistentvolumeclaims/status`. */
export interface ClaimPatch {
  readonly metadata: {
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string | null>>;
  };
  readonly status: Readonly<Record<string, unknown>>;
}

/** The message for users while the node part is missing; the text is the reference's. */
const waitingForNode = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";

/**
 * True where the server keeps how far an expansion is. Ask it of a claim that {@link begunPatch} was applied to: one
 * that came back without the size which was written belongs to a server that does not know the field.
 */
export function keepsProgress(claim: PersistentVolumeClaim): boolean {
  return claim.status?.allocatedResources?.storage !== undefined;
}

/** The driver is going to be asked for `size`. */
export function begunPatch(claim: Claim, size: string, nowText: string): ClaimPatch {
  return patchOf(
    claim,
    {
      ...conditionsWith(claim, [condition("Resizing", nowText)], false),
      allocatedResources: { storage: size },
      allocatedResourceStatuses: { storage: "ControllerResizeInProgress" },
    },
    undefined,
  );
}

/** The volume has grown, the kubelet is to do its part. */
export function nodePendingPatch(claim: Claim, nowText: string): ClaimPatch {
  const keeps = keepsProgress(claim);
  const pending = condition("FileSystemResizePending", nowText, waitingForNode);
  // It is still being resized; earlier errors are over. The classic sequence shows one condition at a time.
  const resizing = keeps ? (claim.status?.conditions ?? []).filter(({ type }) => type === "Resizing") : [];
  return patchOf(
    claim,
    {
      ...conditionsWith(claim, [...resizing, pending], false),
      ...(keeps ? { allocatedResourceStatuses: { storage: "NodeResizePending" } } : {}),
    },
    undefined,
  );
}

/** The volume has `capacity`, and nothing is left to do. */
export function finishedPatch(claim: Claim, capacity: string): ClaimPatch {
  const { storage: _, ...others } = claim.status?.allocatedResourceStatuses ?? {};
  // The states of other resources stay: the whole map goes only when storage was the last one in it.
  const isAlone = Object.keys(others).length === 0;
  return patchOf(
    claim,
    {
      ...conditionsWith(claim, [], false),
      capacity: { storage: capacity },
      ...(stateOf(claim) === "" ? {} : { allocatedResourceStatuses: isAlone ? null : { storage: null } }),
    },
    keepsProgress(claim) ? "true" : undefined,
  );
}

/** The driver refused, for now or permanently; undefined when that is known already, or the server cannot keep it. */
export function refusedPatch(
  claim: Claim,
  refusal: { readonly infeasible: boolean; readonly message: string },
  nowText: string,
): ClaimPatch | undefined {
  if (!keepsProgress(claim)) return undefined;
  const failed = condition("ControllerResizeError", nowText, `failed to expand pvc with ${refusal.message}`);
  const { conditions } = conditionsWith(claim, [failed], true);
  const isSaid = conditions.every((one) => claim.status?.conditions?.includes(one));
  const isMarked = !refusal.infeasible || stateOf(claim) === "ControllerResizeInfeasible";
  if (isSaid && isMarked) return undefined;
  const infeasible = { allocatedResourceStatuses: { storage: "ControllerResizeInfeasible" } };
  return {
    metadata: { resourceVersion: claim.metadata.resourceVersion },
    status: { conditions, ...(refusal.infeasible ? infeasible : {}) },
  };
}

function conditionsWith(
  claim: Claim,
  wanted: readonly PersistentVolumeClaimCondition[],
  keep: boolean,
): { readonly conditions: readonly PersistentVolumeClaimCondition[] } {
  return { conditions: mergedConditions(claim.status?.conditions, wanted, resizeConditions, keep) };
}

/** @param notRequired the annotation for kubelets that need do nothing; undefined: none */
function patchOf(
  claim: Claim,
  status: Readonly<Record<string, unknown>>,
  notRequired: string | undefined,
): ClaimPatch {
  const before = claim.metadata.annotations?.[nodeExpansionNotRequiredAnnotation];
  const annotations = { [nodeExpansionNotRequiredAnnotation]: notRequired ?? null };
  return {
    metadata: {
      resourceVersion: claim.metadata.resourceVersion,
      ...(before === notRequired ? {} : { annotations }),
    },
    status,
  };
}
