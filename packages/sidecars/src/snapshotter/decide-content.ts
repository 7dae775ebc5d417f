/**
 * The snapshotter's decision for one content (docs/behaviour/sidecars.md 5): the steps to what {@link ContentRules.step}
 * asks for, for contents of single snapshots and of groups alike. Pure.
 *
 *     create: readSecret ─► storeIntent ─► createSnapshot ─► reportStatus ─► removeMark ─► settle, or lookAgain
 *     check:  readSecret ─► look ─► reportStatus ─► settle, or lookAgain
 *     delete: readLive ─► readSecret ─► deleteSnapshot ─► removeFinalizer ─► settle
 *     failed: (removeMark ─►) emitFailure ─► reportFailure ─► fail: the queue backs off
 *
 * Invariants
 *  - That CreateSnapshot is called is stored before it is called, with the finalizer; only a final answer takes it back.
 *    Until then the content stays and the call is repeated, so that no snapshot is left that no object names.
 *  - DeleteSnapshot is decided on the content as the server has it now: its UID, deletionTimestamp and policy.
 *  - The finalizer goes only after DeleteSnapshot has succeeded, or where nothing is to be deleted.
 *  - A pass may stop at any step and begin again; a second pass changes nothing more.
 */
import { isDeleting, type SecretReference } from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import {
  finalizerRemovalPatch,
  intentPatch,
  isMarkedAs,
  markRemovalPatch,
  type PatchBody,
} from "./content-patches.ts";
import type {
  ContentFailure,
  ContentKind,
  ContentObject,
  ContentRules,
  ContentTypes,
  ObservedContent,
} from "./content-rules.ts";
import type { ContentStep } from "./content-step.ts";

/** One step over a content. */
export type ContentPassStep<T extends ContentTypes> =
  | { readonly step: "settle" }
  /** The mark that is gone may have been what a deletion or a look has waited for; `isReady`: it is looked at no more. */
  | { readonly step: "decideAgain"; readonly isReady: boolean }
  /** The driver is not ready: look again, later each time. */
  | { readonly step: "lookAgain" }
  /** Read the content from the server. */
  | { readonly step: "readLive" }
  /** `isOptional`: the driver may do without it. */
  | { readonly step: "readSecret"; readonly reference: SecretReference; readonly isOptional: boolean }
  | { readonly step: "storeIntent"; readonly patch: PatchBody }
  | { readonly step: "createSnapshot"; readonly request: T["request"] }
  | { readonly step: "look"; readonly handle: T["handle"] }
  | { readonly step: "readServedVersion" }
  | { readonly step: "reportStatus"; readonly patch: PatchBody }
  | { readonly step: "removeMark"; readonly patch: PatchBody }
  | { readonly step: "deleteSnapshot"; readonly handle: T["handle"] }
  | { readonly step: "removeFinalizer"; readonly patch: PatchBody }
  | {
      readonly step: "emitFailure";
      readonly reason: string;
      readonly message: string;
      readonly error: unknown;
    }
  | { readonly step: "reportFailure"; readonly message: string; readonly error: unknown }
  | { readonly step: "fail"; readonly error: unknown };

/** The decision for contents of one kind. */
export function decideContent<T extends ContentTypes>(
  rules: ContentRules<T>,
): (observed: ObservedContent<T>) => ContentPassStep<T> {
  return (observed) => {
    const { content, progress } = observed;
    const asked: ContentStep<T["handle"]> = progress.isBegun ? { kind: "create" } : rules.step(content);
    if (progress.failure !== undefined) return decideFailure(rules, observed, asked, progress.failure);
    try {
      return decideAsked(rules, observed, asked);
    } catch (error) {
      // What the objects do not allow is reported as a failed call is.
      return decideFailure(rules, observed, asked, { error });
    }
  };
}

function decideAsked<T extends ContentTypes>(
  rules: ContentRules<T>,
  observed: ObservedContent<T>,
  asked: ContentStep<T["handle"]>,
): ContentPassStep<T> {
  switch (asked.kind) {
    case "none":
      return { step: "settle" };
    case "create":
      return decideCreation(rules, observed);
    case "check":
      return decideLook(rules, observed, asked.handle);
    case "settleCreation":
      return observed.progress.isMarkRemoved
        ? { step: "decideAgain", isReady: true }
        : { step: "removeMark", patch: markRemovalPatch(rules.kind) };
    case "delete":
      return decideDeletion(rules, observed, asked.handle);
    case "letGo":
      return decideRelease(rules, observed);
    default:
      return assertNever(asked);
  }
}

function decideCreation<T extends ContentTypes>(
  rules: ContentRules<T>,
  observed: ObservedContent<T>,
): ContentPassStep<T> {
  const { content, contentClass, progress } = observed;
  const { known } = progress;
  if (known === undefined) {
    const request = rules.creationRequest(content, contentClass);
    const reference = rules.secretOf(content);
    if (reference !== undefined && progress.secrets === undefined)
      return { step: "readSecret", reference, isOptional: false };
    const patch = rules.isKnown(content) ? undefined : intentPatch(content, rules.kind);
    return patch === undefined ? { step: "createSnapshot", request } : { step: "storeIntent", patch };
  }
  const storing = decideStatus(rules, observed, known.state, known.nowNs);
  if (storing !== undefined) return storing;
  if (isMarkedAs(content, rules.kind) && !progress.isMarkRemoved)
    return { step: "removeMark", patch: markRemovalPatch(rules.kind) };
  if (isDeleting(content)) return { step: "decideAgain", isReady: known.state.ready };
  return { step: known.state.ready ? "settle" : "lookAgain" };
}

function decideLook<T extends ContentTypes>(
  rules: ContentRules<T>,
  observed: ObservedContent<T>,
  handle: T["handle"],
): ContentPassStep<T> {
  const { content, contentClass, progress, nowNs } = observed;
  const assumed = rules.assumedState(handle);
  const known = progress.known ?? (assumed === undefined ? undefined : { state: assumed, nowNs });
  if (known === undefined) {
    const reference = rules.lookSecretOf(content, contentClass);
    if (reference !== undefined && progress.secrets === undefined)
      return { step: "readSecret", reference, isOptional: false };
    return { step: "look", handle };
  }
  const storing = decideStatus(rules, observed, known.state, known.nowNs);
  return storing ?? { step: known.state.ready ? "settle" : "lookAgain" };
}

/** What of the driver's answer the status does not say yet; undefined: nothing. */
function decideStatus<T extends ContentTypes>(
  rules: ContentRules<T>,
  { content, progress }: ObservedContent<T>,
  state: T["state"],
  nowNs: number,
): ContentPassStep<T> | undefined {
  if (progress.isStatusStored) return undefined;
  if (rules.readsServedVersion && progress.served === undefined) return { step: "readServedVersion" };
  const status = rules.statusPatch(content, state, nowNs, progress.served?.version);
  return status === undefined ? undefined : { step: "reportStatus", patch: { status } };
}

function decideDeletion<T extends ContentTypes>(
  rules: ContentRules<T>,
  observed: ObservedContent<T>,
  handle: T["handle"],
): ContentPassStep<T> {
  const { content, progress } = observed;
  if (progress.isDeleted) return decideRelease(rules, observed);
  // A deleted snapshot cannot be restored, and the cache may be older than a change of the policy, or another content's.
  if (!progress.isLive) return { step: "readLive" };
  const reference = rules.secretOf(content);
  // A namespace that is being removed takes its secret first, and the driver may do without.
  if (reference !== undefined && progress.secrets === undefined)
    return { step: "readSecret", reference, isOptional: true };
  return { step: "deleteSnapshot", handle };
}

function decideRelease<T extends ContentTypes>(
  { kind }: ContentRules<T>,
  { content, progress }: ObservedContent<T>,
): ContentPassStep<T> {
  const patch = progress.isFinalizerRemoved ? undefined : finalizerRemovalPatch(content, kind);
  return patch === undefined ? { step: "settle" } : { step: "removeFinalizer", patch };
}

function decideFailure<T extends ContentTypes>(
  { kind }: ContentRules<T>,
  { content, progress }: ObservedContent<T>,
  asked: ContentStep<unknown>,
  failure: ContentFailure,
): ContentPassStep<T> {
  const { error } = failure;
  const mustUnmark = failure.isFinalCreateError && isMarkedAs(content, kind) && !progress.isMarkRemoved;
  if (mustUnmark) return { step: "removeMark", patch: markRemovalPatch(kind) };
  const { reason, what, inStatus } = failureReport(asked, kind);
  const message = `${what}: ${errorChain(error)}`;
  // Reported once for as long as it stays the same.
  if (inStatus && hasError(content, message)) return { step: "fail", error };
  if (!failure.isEmitted) return { step: "emitFailure", reason, message, error };
  return inStatus && !failure.isStored ? { step: "reportFailure", message, error } : { step: "fail", error };
}

const hasError = ({ status }: ContentObject, message: string) => status?.error?.message === message;

/** How a failure is reported to users, by the reference's names. */
function failureReport(
  { kind }: ContentStep<unknown>,
  { noun, reasonPrefix }: Pick<ContentKind<ContentObject>, "noun" | "reasonPrefix">,
): { readonly reason: string; readonly what: string; readonly inStatus: boolean } {
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
