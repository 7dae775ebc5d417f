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
import { isDeleting, type KubeObject, type ReconcileResult, type Stored, settled } from "@longshore/kube";
import { assertNever, type BackoffPolicy, backoffMs } from "@longshore/runtime";
import {
  beingCreatedAnnotation,
  contentFinalizer,
  snapshotResources,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import type { SidecarEnv } from "../common/env.ts";
import { type ContentStep, decideContentStep, isOfDriver } from "./content-step.ts";
import type { ContentKind, ContentWrites, ToldFailure } from "./content-writes.ts";
import { isFinalCreateError } from "./create-outcome.ts";
import {
  canLook,
  createRequest,
  createSnapshot,
  deleteSnapshot,
  lookAtSnapshot,
  type SnapshotCalls,
} from "./driver-snapshots.ts";
import { type SnapshotState, statusPatch } from "./snapshot-state.ts";

/** Contents of single snapshots. */
export const snapshotContents: ContentKind<VolumeSnapshotContent> = {
  resource: snapshotResources.volumeSnapshotContents,
  finalizer: contentFinalizer,
  beingCreatedAnnotation,
};

/** What the reconciler works with. */
export interface ContentContext extends SnapshotCalls {
  readonly env: SidecarEnv;
  readonly writes: ContentWrites<VolumeSnapshotContent>;
  readonly content: (name: string) => Stored<VolumeSnapshotContent> | undefined;
  /** How often each snapshot that is not ready yet was looked at in a row. */
  readonly polls: Map<string, number>;
  /** Delays between those looks. */
  readonly backoff: BackoffPolicy;
}

type Content = Stored<VolumeSnapshotContent>;

const checkFailure: ToldFailure = {
  reason: "SnapshotContentCheckandUpdateFailed",
  what: "Failed to check and update snapshot content",
  inStatus: true,
};
const deleteFailure: ToldFailure = {
  reason: "SnapshotDeleteError",
  what: "Failed to delete snapshot",
  inStatus: false,
};

/** What users read of a step that failed, by the reference's names. */
const failures: Readonly<Record<ContentStep["kind"], ToldFailure>> = {
  none: checkFailure,
  create: { reason: "SnapshotCreationFailed", what: "Failed to create snapshot", inStatus: true },
  check: checkFailure,
  settleCreation: checkFailure,
  delete: deleteFailure,
  letGo: deleteFailure,
};

/** One pass over the content of this name. Failures are told in its status and thrown, to be retried. */
export async function reconcileContent(
  context: ContentContext,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const content = context.content(name);
  if (content === undefined || !isOfDriver(content, context.driver.name, context.classOf)) return settled;
  const step = decideContentStep(content, canLook(context.driver));
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

/** The snapshotter's own mark wakes nobody when it goes, but a deletion, or a look, may have waited for that. */
export function isMoreToDo(content: KubeObject, step: string): boolean {
  return step === "settleCreation" || (step === "create" && isDeleting(content));
}

/** Looks again at a snapshot that is not ready, later each time. */
export function lookAgain(
  context: Pick<ContentContext, "polls" | "backoff" | "env">,
  name: string,
): ReconcileResult {
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
  const { writes } = context;
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
      await writes.unmark(content, signal);
      return true;
    case "delete":
      await deleteSnapshot(context, content, step.snapshotHandle, signal);
      await writes.letGo(content, signal);
      return true;
    case "letGo":
      await writes.letGo(content, signal);
      return true;
    default:
      return assertNever(step);
  }
}

async function create(context: ContentContext, content: Content, signal: AbortSignal): Promise<boolean> {
  const { writes } = context;
  const request = await createRequest(context, content, signal);
  // Once its handle is known nothing can be lost: the call is repeated without further ado until it is ready.
  const isKnown = content.status?.snapshotHandle !== undefined;
  const marked = isKnown ? content : await writes.mark(content, signal);
  let state: SnapshotState;
  try {
    state = await createSnapshot(context, request, signal);
  } catch (error) {
    if (isFinalCreateError(error)) await writes.unmark(marked, signal);
    throw error;
  }
  await tell(context, content, state, signal);
  await writes.unmark(marked, signal);
  return state.ready;
}

function tell(
  context: ContentContext,
  content: Content,
  state: SnapshotState,
  signal: AbortSignal,
): Promise<void> {
  const nowNs = context.env.clock.now().getTime() * 1_000_000;
  return context.writes.tell(content, statusPatch(content.status, state, nowNs), signal);
}
