/**
 * Deleting: at once, or marked first while finalizers or a grace period hold the object
 * (apiserver registry/rest BeforeDelete and registry/generic Store.Delete).
 */

import type { KubeObject, Pod, Stored } from "@longshore/kube";
import { apiTime, isPodTerminal } from "@longshore/kube/basics";
import type { ListAnswer, ObjectAnswer } from "../api/api-request.ts";
import { apiError, conflict, forbidden, invalid, invalidValue, unsupportedValue } from "../api/errors.ts";
import type { Kind } from "../api/kind.ts";
import { own } from "../api/own.ts";
import { betweenCommits, commitWork } from "../api/work-time.ts";
import { systemPriorityClasses } from "./kinds/scheduling.ts";
import { commitOne, existing, isDryRun, type KindRequest, type RegistryContext } from "./registry-context.ts";
import { selectedObjects } from "./selection.ts";

/** The options of a deletion, from the body or the query. */
interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: string;
  readonly orphanDependents?: boolean;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly dryRun?: readonly string[];
  /** What is done with what the object owns where nothing else is said: it is left. */
  readonly orphansByDefault?: boolean;
}

/** DELETE of one object. */
export function deleteObject(context: RegistryContext, request: KindRequest): ObjectAnswer {
  const options = deleteOptions(request);
  refuseSystemPriorityClass(request);
  return removeObject(context, request, existing(request), options, isDry(request, options));
}

/** The system's own priority classes stay (kubernetes pkg/registry/scheduling/priorityclass/storage Delete). */
function refuseSystemPriorityClass({ of, name = "" }: KindRequest): void {
  if (of.group !== "scheduling.k8s.io" || of.plural !== "priorityclasses") return;
  if (!systemPriorityClasses.some(({ metadata }) => metadata?.name === name)) return;
  const resource = { group: of.group, resource: of.plural };
  throw forbidden(resource, name, "this is a system priority class and cannot be deleted");
}

/** A dry run is asked for in the query or in the options. */
export function isDry(request: KindRequest, options: Pick<DeleteOptions, "dryRun">): boolean {
  return isDryRun(request) || (options.dryRun?.includes("All") ?? false);
}

/** DELETE of all objects that the selectors choose. */
export function deleteCollection(context: RegistryContext, request: KindRequest): ListAnswer {
  const options = deleteOptions(request);
  const chosen = selectedObjects(request);
  for (const object of chosen) {
    betweenCommits();
    if (request.table.get(object.metadata.namespace ?? "", object.metadata.name) === undefined) continue;
    removeObject(context, ofMember(request, object), object, options, isDry(request, options));
  }
  commitWork();
  return { type: "list", items: chosen, resourceVersion: String(context.store.revision) };
}

function ofMember(request: KindRequest, { metadata }: Stored): KindRequest {
  const { name, namespace } = metadata;
  return { ...request, name, ...(namespace === undefined ? {} : { namespace }) };
}

/** The objects that {@link deleteCollection} would delete. @throws KubeApiError for options that cannot be */
export function membersToDelete(request: KindRequest): readonly Stored[] {
  deleteOptions(request);
  return selectedObjects(request);
}

/** Deletes one of them, as it is now. @throws KubeApiError 404 when it is gone */
export function deleteMember(context: RegistryContext, request: KindRequest, member: Stored): ObjectAnswer {
  const options = deleteOptions(request);
  const one = ofMember(request, member);
  return removeObject(context, one, existing(one), options, isDry(request, options));
}

function removeObject(
  context: RegistryContext,
  request: KindRequest,
  old: Stored,
  options: DeleteOptions,
  dry: boolean,
): ObjectAnswer {
  const { of } = request;
  checkPreconditions(of, old, options);
  askWebhooks(context, request, old, options);
  const prepared = old.metadata.deletionTimestamp === undefined ? of.prepareDelete?.(old) : undefined;
  const plan = planDeletion(of, (prepared as Stored | undefined) ?? old, options, context.clock.now());
  const identity = { namespace: old.metadata.namespace ?? "", name: old.metadata.name };
  if (plan.kind === "markAndRemove" && !dry) {
    const marked = commitOne(context, request, identity, plan.object);
    commitOne(context, request, identity, undefined);
    return { type: "object", code: 200, object: marked };
  }
  if (plan.kind === "remove") {
    if (!dry) commitOne(context, request, identity, undefined);
    return { type: "object", code: 200, object: answerFor(of, old) };
  }
  if (plan.kind === "keep" || dry)
    return { type: "object", code: 200, object: "object" in plan ? own(plan.object) : old };
  return { type: "object", code: 200, object: commitOne(context, request, identity, plan.object) };
}

function askWebhooks({ webhooks }: RegistryContext, asked: KindRequest, old: Stored, given: DeleteOptions) {
  if (webhooks === undefined) return;
  const { orphansByDefault: _, ...options } = given;
  // The request names no object where a collection is deleted, and webhooks see what it names.
  const { name: _n, ...ofCollection } = asked;
  const request = asked.verb === "deletecollection" ? ofCollection : asked;
  const write = { operation: "DELETE", request, old, options: options as KubeObject } as const;
  webhooks.mutate(write);
  webhooks.validate(write);
}

/** An object that stays for a while, marked. */
interface Marked {
  readonly kind: "mark";
  readonly object: KubeObject;
}

/** What deleting an object comes to. */
type DeletionPlan =
  | { readonly kind: "remove" }
  /** A pod that ends at once: watchers see the deletion mark before the removal. */
  | { readonly kind: "markAndRemove"; readonly object: KubeObject }
  | Marked
  | { readonly kind: "keep" };

/** Decides: remove at once, mark (or mark again with a shorter grace period), or leave it as it is marked. */
export function planDeletion(of: Kind, old: Stored, options: DeleteOptions, now: Date): DeletionPlan {
  if (of.kind === "Namespace" && of.group === "") return planNamespaceDeletion(old, now);
  const graceSeconds = graceOf(of, old, options.gracePeriodSeconds);
  const finalizers = finalizersFor(old, options);
  const { deletionTimestamp, deletionGracePeriodSeconds } = old.metadata;
  if (deletionTimestamp !== undefined) {
    if (deletionGracePeriodSeconds !== undefined && deletionGracePeriodSeconds > 0) {
      // Already going: only sooner is possible.
      if (options.gracePeriodSeconds === undefined || graceSeconds >= deletionGracePeriodSeconds) {
        return { kind: "keep" };
      }
      // The shorter time counts from the first request too (registry/rest BeforeDelete).
      const start = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
      const marked = mark(old, finalizers, graceSeconds, new Date(start + graceSeconds * 1000));
      return graceSeconds === 0 && finalizers.length === 0
        ? { kind: "markAndRemove", object: marked.object }
        : marked;
    }
    return finalizers.length === 0 ? { kind: "remove" } : { kind: "keep" };
  }
  const marked = mark(old, finalizers, graceSeconds, new Date(now.getTime() + graceSeconds * 1000));
  if (graceSeconds > 0 || finalizers.length > 0) return marked;
  return isGraceful(of) ? { kind: "markAndRemove", object: marked.object } : { kind: "remove" };
}

/** A namespace is removed after its content: until then its finalizers, in the spec, hold it. */
function planNamespaceDeletion(old: Stored, now: Date): DeletionPlan {
  const held = hasSpecFinalizers(old) || (old.metadata.finalizers ?? []).length > 0;
  if (old.metadata.deletionTimestamp !== undefined) return { kind: held ? "keep" : "remove" };
  const { status } = old as KubeObject & { status?: object };
  const metadata = { ...old.metadata, deletionTimestamp: apiTime(now) };
  const object = { ...old, metadata, status: { ...status, phase: "Terminating" } } as KubeObject;
  return { kind: "mark", object };
}

function mark(old: Stored, finalizers: readonly string[], graceSeconds: number, at: Date): Marked {
  const first = old.metadata.deletionTimestamp === undefined;
  const { finalizers: _, ...rest } = old.metadata;
  const metadata = {
    ...rest,
    ...(finalizers.length === 0 ? {} : { finalizers: [...finalizers] }),
    deletionTimestamp: apiTime(at),
    deletionGracePeriodSeconds: graceSeconds,
    // Controllers see by the generation that the object is to go (registry/rest BeforeDelete).
    ...(first && rest.generation !== undefined && rest.generation > 0
      ? { generation: rest.generation + 1 }
      : {}),
  };
  return { kind: "mark", object: { ...old, metadata } };
}

/** Only pods end gracefully. */
function isGraceful(of: Kind): boolean {
  return of.kind === "Pod" && of.group === "";
}

/** Those that run on a node are given time (core/pod strategy CheckGracefulDelete). */
function graceOf(of: Kind, old: Stored, asked: number | undefined): number {
  if (!isGraceful(of)) return 0;
  const pod = old as Stored<Pod>;
  // No kubelet would ever report that it has ended.
  if ((pod.spec?.nodeName ?? "") === "") return 0;
  if (isPodTerminal(pod)) return 0;
  return Math.max(0, asked ?? pod.spec?.terminationGracePeriodSeconds ?? 30);
}

/** The finalizers, including the one for the requested treatment of dependents. */
function finalizersFor(old: Stored, options: DeleteOptions): readonly string[] {
  const others = (old.metadata.finalizers ?? []).filter((f) => f !== "orphan" && f !== "foregroundDeletion");
  const policy = options.propagationPolicy ?? (options.orphanDependents === true ? "Orphan" : undefined);
  if (policy === "Orphan") return [...others, "orphan"];
  if (policy === "Foreground") return [...others, "foregroundDeletion"];
  if (policy === "Background" || options.orphanDependents === false) return others;
  const given = old.metadata.finalizers ?? [];
  return options.orphansByDefault === true && given.length === others.length ? [...others, "orphan"] : given;
}

/** Removes an object whose last finalizer an update has taken off; undefined when it has to stay. */
export function finishDeletion(
  context: RegistryContext,
  request: KindRequest,
  identity: { readonly namespace: string; readonly name: string },
  next: KubeObject,
): Stored | undefined {
  const meta = next.metadata;
  if (meta?.deletionTimestamp === undefined || (meta.finalizers ?? []).length > 0) return undefined;
  if ((meta.deletionGracePeriodSeconds ?? 0) > 0 || hasSpecFinalizers(next)) return undefined;
  // The last state is what watchers and the caller are to see.
  commitOne(context, request, identity, undefined);
  return own(next) as Stored;
}

/** Namespaces are held by `spec.finalizers` too. */
export function hasSpecFinalizers(object: KubeObject): boolean {
  if (object.kind !== "Namespace") return false;
  return ((object as { spec?: { finalizers?: readonly string[] } }).spec?.finalizers ?? []).length > 0;
}

function checkPreconditions(of: Kind, old: Stored, { preconditions }: DeleteOptions): void {
  if (preconditions === undefined) return;
  const { uid, resourceVersion } = preconditions;
  // The reference names the kind here, not the resource.
  const named = { group: of.group, resource: of.kind };
  if (uid !== undefined && uid !== old.metadata.uid) {
    throw conflict(
      named,
      old.metadata.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion) {
    throw conflict(
      named,
      old.metadata.name,
      `Precondition failed: ResourceVersion in precondition: ${resourceVersion}, ResourceVersion in object meta: ${old.metadata.resourceVersion}`,
    );
  }
}

function answerFor(of: Kind, object: Stored): KubeObject {
  if (of.answersDeleted === true) return object;
  const { name, uid } = object.metadata;
  const details = { name, ...(of.group === "" ? {} : { group: of.group }), kind: of.plural, uid };
  return own({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details } as KubeObject);
}

const policies: readonly string[] = ["Foreground", "Background", "Orphan"];

function deleteOptions(request: KindRequest): DeleteOptions {
  const body = (request.body ?? {}) as DeleteOptions & { readonly kind?: string };
  if (body.kind !== undefined && body.kind !== "DeleteOptions") {
    throw apiError(500, "", `the body of a DELETE is a DeleteOptions, not a ${body.kind}`);
  }
  const { query } = request;
  const options: DeleteOptions = {
    ...(query.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: query.gracePeriodSeconds }),
    ...(query.propagationPolicy === undefined ? {} : { propagationPolicy: query.propagationPolicy }),
    ...(query.orphanDependents === undefined ? {} : { orphanDependents: query.orphanDependents }),
    ...body,
    orphansByDefault: request.of.orphansByDefault?.includes(request.version) === true,
  };
  const policy = options.propagationPolicy;
  if (policy !== undefined && options.orphanDependents !== undefined) {
    throw invalidOptions(
      invalidValue(
        "propagationPolicy",
        policy,
        "orphanDependents and deletionPropagation cannot be both set",
      ),
    );
  }
  if (policy !== undefined && !policies.includes(policy)) {
    throw invalidOptions(unsupportedValue("propagationPolicy", policy, [...policies, "nil"]));
  }
  return options;
}

function invalidOptions(problem: ReturnType<typeof invalidValue>): Error {
  return invalid("meta.k8s.io", "DeleteOptions", "", [problem]);
}
