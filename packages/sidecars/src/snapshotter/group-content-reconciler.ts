/**
 * Brings the group of snapshots at the driver and its VolumeGroupSnapshotContent together, as `content-reconciler.ts`
 * does for single ones and with the same invariants.
 */
import { type ReconcileResult, type Stored, settled } from "@longshore/kube";
import { assertNever, type BackoffPolicy } from "@longshore/runtime";
import {
  groupBeingCreatedAnnotation,
  groupContentFinalizer,
  snapshotResources,
  type VolumeGroupSnapshotContent,
} from "@longshore/storage";
import type { SidecarEnv } from "../common/env.ts";
import { isMoreToDo, lookAgain } from "./content-reconciler.ts";
import type { ContentKind, ContentWrites, ToldFailure } from "./content-writes.ts";
import { isFinalCreateError } from "./create-outcome.ts";
import {
  createGroup,
  createGroupRequest,
  deleteGroup,
  type GroupCalls,
  lookAtGroup,
} from "./driver-groups.ts";
import { decideGroupContentStep, type GroupContentStep, isGroupOfDriver } from "./group-content-step.ts";
import { type GroupState, groupStatusPatch } from "./group-state.ts";

/** Contents of group snapshots. */
export const groupSnapshotContents: ContentKind<VolumeGroupSnapshotContent> = {
  resource: snapshotResources.volumeGroupSnapshotContents,
  finalizer: groupContentFinalizer,
  beingCreatedAnnotation: groupBeingCreatedAnnotation,
};

/** What the reconciler works with. */
export interface GroupContentContext extends GroupCalls {
  readonly env: SidecarEnv;
  readonly writes: ContentWrites<VolumeGroupSnapshotContent>;
  readonly content: (name: string) => Stored<VolumeGroupSnapshotContent> | undefined;
  /** How often each group that is not ready yet was looked at in a row. */
  readonly polls: Map<string, number>;
  /** Delays between those looks. */
  readonly backoff: BackoffPolicy;
}

type Content = Stored<VolumeGroupSnapshotContent>;

const checkFailure: ToldFailure = {
  reason: "GroupSnapshotContentCheckandUpdateFailed",
  what: "Failed to check and update group snapshot content",
  inStatus: true,
};
const deleteFailure: ToldFailure = {
  reason: "GroupSnapshotDeleteError",
  what: "Failed to delete group snapshot",
  inStatus: false,
};

/** What users read of a step that failed, by the reference's names. */
const failures: Readonly<Record<GroupContentStep["kind"], ToldFailure>> = {
  none: checkFailure,
  create: { reason: "GroupSnapshotCreationFailed", what: "Failed to create group snapshot", inStatus: true },
  check: checkFailure,
  settleCreation: checkFailure,
  delete: deleteFailure,
  letGo: deleteFailure,
};

/** One pass over the content of this name. Failures are told in its status and thrown, to be retried. */
export async function reconcileGroupContent(
  context: GroupContentContext,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const content = context.content(name);
  if (content === undefined || !isGroupOfDriver(content, context.driver.name, context.classOf))
    return settled;
  const step = decideGroupContentStep(content);
  try {
    const isReady = await act(context, content, step, signal);
    if (isReady) context.polls.delete(name);
    if (isMoreToDo(content, step.kind)) return { requeueAfterMs: 0 };
    if (isReady) return settled;
  } catch (error) {
    await context.writes.report(content, failures[step.kind], error, signal);
    throw error;
  }
  return lookAgain(context, name);
}

/** Does what the step says; false: the driver is not ready with the group. */
async function act(
  context: GroupContentContext,
  content: Content,
  step: GroupContentStep,
  signal: AbortSignal,
): Promise<boolean> {
  const { writes } = context;
  switch (step.kind) {
    case "none":
      return true;
    case "create":
      return create(context, content, signal);
    case "check": {
      const state = await lookAtGroup(context, content, step.handles, signal);
      await tell(context, content, state, signal);
      return state.ready;
    }
    case "settleCreation":
      await writes.unmark(content, signal);
      return true;
    case "delete":
      await deleteGroup(context, content, step.handles, signal);
      await writes.letGo(content, signal);
      return true;
    case "letGo":
      await writes.letGo(content, signal);
      return true;
    default:
      return assertNever(step);
  }
}

async function create(context: GroupContentContext, content: Content, signal: AbortSignal): Promise<boolean> {
  const { writes } = context;
  const request = await createGroupRequest(context, content, signal);
  const isKnown = content.status?.volumeGroupSnapshotHandle !== undefined;
  const marked = isKnown ? content : await writes.mark(content, signal);
  let state: GroupState;
  try {
    state = await createGroup(context, request, signal);
  } catch (error) {
    if (isFinalCreateError(error)) await writes.unmark(marked, signal);
    throw error;
  }
  await tell(context, content, state, signal);
  await writes.unmark(marked, signal);
  return state.ready;
}

async function tell(
  context: GroupContentContext,
  content: Content,
  state: GroupState,
  signal: AbortSignal,
): Promise<void> {
  const { env, writes } = context;
  const served = await env.kube.servedVersion(groupSnapshotContents.resource, { signal });
  const nowNs = env.clock.now().getTime() * 1_000_000;
  await writes.tell(content, groupStatusPatch(content.status, state, nowNs, served === "v1beta1"), signal);
}
