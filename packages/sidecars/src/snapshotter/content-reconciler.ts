/**
 * Brings the snapshots at the driver and their content together: of single snapshots and of groups alike, which
 * differ in their {@link ContentWork} only.
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
import type { SidecarEnv } from "../common/env.ts";
import type { ContentStep } from "./content-step.ts";
import type { ContentKind, ContentObject, ContentWrites, ToldFailure } from "./content-writes.ts";
import { isFinalCreateError } from "./create-outcome.ts";

/**
 * What is to be done for contents of one kind.
 * @typeParam H what names, to the driver, that which exists
 * @typeParam S how it is, by the driver
 */
export interface ContentWork<C extends KubeObject, H, S extends { readonly ready: boolean }> {
  readonly kind: ContentKind<C>;
  isOurs(content: Stored<C>): boolean;
  decide(content: Stored<C>): ContentStep<H>;
  /** Its handle is known: nothing can be lost, and the call is repeated without further ado until it is ready. */
  isKnown(content: Stored<C>): boolean;
  /** Collects the parameters of the driver's call, and returns the call, which may be repeated. */
  prepareCreation(content: Stored<C>, signal: AbortSignal): Promise<() => Promise<S>>;
  look(content: Stored<C>, handle: H, signal: AbortSignal): Promise<S>;
  delete(content: Stored<C>, handle: H, signal: AbortSignal): Promise<void>;
  /**
   * What is new of the status; undefined: nothing is. @param nowNs stands in for a time that the driver does not report
   */
  statusPatch(
    content: Stored<C>,
    state: S,
    nowNs: number,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>> | undefined>;
}

/** What the reconciler works with. */
export interface ContentContext<C extends ContentObject, H, S extends { readonly ready: boolean }> {
  readonly env: SidecarEnv;
  readonly work: ContentWork<C, H, S>;
  readonly writes: ContentWrites<C>;
  readonly content: (name: string) => Stored<C> | undefined;
  /** How often each that is not ready yet was looked at in a row. */
  readonly polls: Map<string, number>;
  /** Delays between those looks. */
  readonly backoff: BackoffPolicy;
}

/** One pass over the content of this name. Failures are reported in its status and thrown, to be retried. */
export async function reconcileContent<C extends ContentObject, H, S extends { readonly ready: boolean }>(
  context: ContentContext<C, H, S>,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { work, polls } = context;
  const content = context.content(name);
  if (content === undefined || !work.isOurs(content)) return settled;
  const step = work.decide(content);
  try {
    const isReady = await act(context, content, step, signal);
    if (isReady) polls.delete(name);
    if (isMoreToDo(content, step)) return { requeueAfterMs: 0 };
    if (isReady) return settled;
  } catch (error) {
    await context.writes.report(content, failureOf(step, work.kind), error, signal);
    throw error;
  }
  return lookAgain(context, name);
}

/**
 * Removing the snapshotter's own annotation does not queue the content, but a deletion or a look may have waited for
 * that.
 */
function isMoreToDo(content: KubeObject, { kind }: ContentStep<unknown>): boolean {
  return kind === "settleCreation" || (kind === "create" && isDeleting(content));
}

/** Looks again at what is not ready, later each time. */
function lookAgain(
  { polls, backoff, env }: Pick<ContentContext<never, never, never>, "polls" | "backoff" | "env">,
  name: string,
): ReconcileResult {
  const looks = (polls.get(name) ?? 0) + 1;
  polls.set(name, looks);
  return { requeueAfterMs: backoffMs(backoff, looks, env.random) };
}

/** What users read of a step that failed, by the reference's names. */
function failureOf(
  { kind }: ContentStep<unknown>,
  { noun, reasonPrefix }: Pick<ContentKind<KubeObject>, "noun" | "reasonPrefix">,
): ToldFailure {
  switch (kind) {
    case "create":
      return {
        reason: `${reasonPrefix}SnapshotCreationFailed`,
        what: `Failed to create ${noun}`,
        inStatus: true,
      };
    case "none":
    case "check":
    case "settleCreation":
      return {
        reason: `${reasonPrefix}SnapshotContentCheckandUpdateFailed`,
        what: `Failed to check and update ${noun} content`,
        inStatus: true,
      };
    case "delete":
    case "letGo":
      return {
        reason: `${reasonPrefix}SnapshotDeleteError`,
        what: `Failed to delete ${noun}`,
        inStatus: false,
      };
    default:
      return assertNever(kind);
  }
}

/** Does what the step says; false: the driver is not ready. */
async function act<C extends ContentObject, H, S extends { readonly ready: boolean }>(
  context: ContentContext<C, H, S>,
  content: Stored<C>,
  step: ContentStep<H>,
  signal: AbortSignal,
): Promise<boolean> {
  const { work, writes } = context;
  switch (step.kind) {
    case "none":
      return true;
    case "create":
      return create(context, content, signal);
    case "check": {
      const state = await work.look(content, step.handle, signal);
      await tell(context, content, state, signal);
      return state.ready;
    }
    case "settleCreation":
      await writes.unmark(content, signal);
      return true;
    case "delete":
      await work.delete(content, step.handle, signal);
      await writes.letGo(content, signal);
      return true;
    case "letGo":
      await writes.letGo(content, signal);
      return true;
    default:
      return assertNever(step);
  }
}

async function create<C extends ContentObject, H, S extends { readonly ready: boolean }>(
  context: ContentContext<C, H, S>,
  content: Stored<C>,
  signal: AbortSignal,
): Promise<boolean> {
  const { work, writes } = context;
  const call = await work.prepareCreation(content, signal);
  const marked = work.isKnown(content) ? content : await writes.mark(content, signal);
  let state: S;
  try {
    state = await call();
  } catch (error) {
    if (isFinalCreateError(error)) await writes.unmark(marked, signal);
    throw error;
  }
  await tell(context, content, state, signal);
  await writes.unmark(marked, signal);
  return state.ready;
}

async function tell<C extends ContentObject, H, S extends { readonly ready: boolean }>(
  { env, work, writes }: ContentContext<C, H, S>,
  content: Stored<C>,
  state: S,
  signal: AbortSignal,
): Promise<void> {
  const nowNs = env.clock.now().getTime() * 1_000_000;
  await writes.tell(content, await work.statusPatch(content, state, nowNs, signal), signal);
}
