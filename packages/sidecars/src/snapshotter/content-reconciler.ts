/**
 * Brings the snapshot at the driver and its VolumeSnapshotContent together.
 *
 *     volumeHandle ─► being-created ─► CreateSnapshot ─► status ─► annotation off ─► ready
 *     snapshotHandle ─► ListSnapshots ─► status
 *     deleted with its VolumeSnapshot ─► DeleteSnapshot ─► finalizer off ─► gone
 *
 * Invariants
 *  - That CreateSnapshot is called is stored before it is called, with the finalizer; only a final answer takes it back.
 *    Until then the content stays and the call is repeated, so that no snapshot is left that no object names.
 *  - The finalizer goes only after DeleteSnapshot has succeeded, or where nothing is to be deleted.
 *  - A pass may stop at any `await` and begin again; a second pass changes nothing more.
 */
import {
  type EventRecorder,
  involvedObject,
  isConflict,
  isDeleting,
  isNotFound,
  type Patch,
  type ReconcileResult,
  type Stored,
  settled,
} from "@longshore/kube";
import { assertNever, type BackoffPolicy, backoffMs, errorChain } from "@longshore/runtime";
import {
  beingCreatedAnnotation,
  contentFinalizer,
  snapshotResources,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import { apiTime, type SidecarEnv } from "../common/env.ts";
import { type ContentStep, decideContentStep, isOfDriver } from "./content-step.ts";
import { isFinalCreateError } from "./create-outcome.ts";
import {
  createRequest,
  createSnapshot,
  deleteSnapshot,
  lookAtSnapshot,
  type SnapshotCalls,
} from "./driver-snapshots.ts";
import { type SnapshotState, statusPatch } from "./snapshot-state.ts";

/** What the reconciler works with. */
export interface ContentContext extends SnapshotCalls {
  readonly env: SidecarEnv;
  readonly events: Pick<EventRecorder, "event">;
  readonly content: (name: string) => Stored<VolumeSnapshotContent> | undefined;
  /** How often each snapshot that is not ready yet was looked at in a row. */
  readonly polls: Map<string, number>;
  /** Delays between those looks. */
  readonly backoff: BackoffPolicy;
}

type Content = Stored<VolumeSnapshotContent>;

const resource = snapshotResources.volumeSnapshotContents;

/** One pass over the content of this name. Failures are told in its status and thrown, to be retried. */
export async function reconcileContent(
  context: ContentContext,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const content = context.content(name);
  if (content === undefined || !isOfDriver(content, context.driver.name, context.classOf)) return settled;
  const step = decideContentStep(content);
  try {
    const ready = await act(context, content, step, signal);
    if (ready) {
      context.polls.delete(name);
      return settled;
    }
  } catch (error) {
    await report(context, content, step, error, signal);
    throw error;
  }
  const polls = (context.polls.get(name) ?? 0) + 1;
  context.polls.set(name, polls);
  return { requeueAfterMs: backoffMs(context.backoff, polls, context.env.random) };
}

/** Does what the step says; false: the driver is not ready with the snapshot. */
async function act(
  context: ContentContext,
  content: Content,
  step: ContentStep,
  signal: AbortSignal,
): Promise<boolean> {
  switch (step.kind) {
    case "none":
      return true;
    case "create":
      return create(context, content, signal);
    case "check": {
      const state = await lookAtSnapshot(context, content, step.snapshotHandle, signal);
      await tell(context, content, state, signal);
      return state.ready;
    }
    case "settleCreation":
      await unmark(context, content, signal);
      return true;
    case "delete":
      await deleteSnapshot(context, content, step.snapshotHandle, signal);
      await letGo(context, content, signal);
      return true;
    case "letGo":
      await letGo(context, content, signal);
      return true;
    default:
      return assertNever(step);
  }
}

async function create(context: ContentContext, content: Content, signal: AbortSignal): Promise<boolean> {
  const request = await createRequest(context, content, signal);
  // Once its handle is known nothing can be lost: the call is repeated without further ado until it is ready.
  const marked =
    content.status?.snapshotHandle === undefined ? await mark(context, content, signal) : content;
  let state: SnapshotState;
  try {
    state = await createSnapshot(context, request, signal);
  } catch (error) {
    if (isFinalCreateError(error)) await unmark(context, marked, signal);
    throw error;
  }
  await tell(context, content, state, signal);
  await unmark(context, marked, signal);
  return state.ready;
}

/** Says that CreateSnapshot is about to be called, and that the content is not to go before its outcome is known. */
async function mark(context: ContentContext, content: Content, signal: AbortSignal): Promise<Content> {
  const { annotations, finalizers = [], resourceVersion } = content.metadata;
  const isMarked = annotations?.[beingCreatedAnnotation] !== undefined;
  // None can be added to what is being deleted.
  const isHeld = finalizers.includes(contentFinalizer) || isDeleting(content);
  if (isMarked && isHeld) return content;
  const metadata = {
    // A content that was deleted meanwhile is looked at anew.
    resourceVersion,
    annotations: { [beingCreatedAnnotation]: "yes" },
    ...(isHeld ? {} : { finalizers: [...finalizers, contentFinalizer] }),
  };
  return patch(context, content, { type: "merge", body: { metadata } }, signal);
}

async function unmark(context: ContentContext, content: Content, signal: AbortSignal): Promise<void> {
  if (content.metadata.annotations?.[beingCreatedAnnotation] === undefined) return;
  const body = { metadata: { annotations: { [beingCreatedAnnotation]: null } } };
  await patch(context, content, { type: "merge", body }, signal);
}

async function tell(
  context: ContentContext,
  content: Content,
  state: SnapshotState,
  signal: AbortSignal,
): Promise<void> {
  const status = statusPatch(content.status, state, context.env.clock.now().getTime() * 1_000_000);
  if (status === undefined) return;
  await patch(context, content, { type: "merge", body: { status } }, signal, "status");
}

async function letGo(context: ContentContext, content: Content, signal: AbortSignal): Promise<void> {
  const { finalizers = [], resourceVersion } = content.metadata;
  const rest = finalizers.filter((finalizer) => finalizer !== contentFinalizer);
  if (rest.length === finalizers.length) return;
  const metadata = { resourceVersion, finalizers: rest.length === 0 ? null : rest };
  try {
    await patch(context, content, { type: "merge", body: { metadata } }, signal);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** What users read of a step that failed, by the reference's names. */
const failures: Readonly<Record<ContentStep["kind"], { readonly reason: string; readonly what: string }>> = {
  none: {
    reason: "SnapshotContentCheckandUpdateFailed",
    what: "Failed to check and update snapshot content",
  },
  create: { reason: "SnapshotCreationFailed", what: "Failed to create snapshot" },
  check: {
    reason: "SnapshotContentCheckandUpdateFailed",
    what: "Failed to check and update snapshot content",
  },
  settleCreation: {
    reason: "SnapshotContentCheckandUpdateFailed",
    what: "Failed to check and update snapshot content",
  },
  delete: { reason: "SnapshotDeleteError", what: "Failed to delete snapshot" },
  letGo: { reason: "SnapshotDeleteError", what: "Failed to delete snapshot" },
};

async function report(
  context: ContentContext,
  content: Content,
  step: ContentStep,
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  // Somebody else was faster: nothing failed, the next pass looks anew.
  if (signal.aborted || isConflict(error)) return;
  const { reason, what } = failures[step.kind];
  const message = `${what}: ${errorChain(error)}`;
  const isTold = content.status?.error?.message === message;
  const creating = step.kind === "create" || step.kind === "check";
  if (creating && isTold) return;
  context.events.event(involvedObject(resource, content), "Warning", reason, message);
  if (!creating) return;
  const status = { readyToUse: false, error: { message, time: apiTime(context.env.clock) } };
  try {
    await patch(context, content, { type: "merge", body: { status } }, signal, "status");
  } catch (statusError) {
    if (!isNotFound(statusError))
      context.env.logger.warn("cannot report a failed snapshot", { error: statusError });
  }
}

function patch(
  context: ContentContext,
  content: Content,
  change: Patch,
  signal: AbortSignal,
  subresource?: "status",
): Promise<Content> {
  const options = subresource === undefined ? { signal } : { signal, subresource };
  return context.env.kube.patch(resource, { name: content.metadata.name }, change, options);
}
