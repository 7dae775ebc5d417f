/** The rules of `metadata`, the same for every kind (apiserver registry/rest BeforeCreate and BeforeUpdate). */

import type { KubeObject, ObjectMeta, OwnerReference, Stored } from "@longshore/kube";
import { apiTime } from "@longshore/kube/basics";
import type { Clock, Random } from "@longshore/runtime";
import { problemsMax } from "../api/bounded.ts";
import {
  apiError,
  badRequest,
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
} from "../api/errors.ts";
import type { Kind } from "../api/kind.ts";
import {
  generatedName,
  labelProblems,
  labelValueProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../api/names.ts";
import { sameJson } from "../api/own.ts";
import { spendTime } from "../api/work-time.ts";

type Meta = { -readonly [K in keyof ObjectMeta]: ObjectMeta[K] };

/** The metadata of a new object: identity given by the server, what only the server may set taken off. */
export function metadataForCreate(
  kind: Kind,
  given: ObjectMeta | undefined,
  namespace: string | undefined,
  env: { readonly clock: Clock; readonly random: Random },
  isDryRun = false,
): ObjectMeta {
  const meta: Meta = { ...given };
  // Only the store objects to it, which a dry run does not reach.
  if (
    !isDryRun &&
    meta.resourceVersion !== undefined &&
    meta.resourceVersion !== "" &&
    meta.resourceVersion !== "0"
  ) {
    throw apiError(500, "", "resourceVersion should not be set on objects to be created");
  }
  if (kind.namespaced) meta.namespace = namespaceOf(given, namespace);
  else delete meta.namespace;
  if ((meta.name ?? "") === "" && (meta.generateName ?? "") !== "") {
    meta.name = generatedName(meta.generateName ?? "", env.random);
  }
  for (const key of [
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
  ] as const) {
    delete meta[key];
  }
  delete meta.resourceVersion;
  if (kind.countsGenerations === true) meta.generation = 1;
  meta.uid = env.random.uuid("uid");
  meta.creationTimestamp = apiTime(env.clock.now());
  return withoutEmpty(meta);
}

function namespaceOf(given: ObjectMeta | undefined, fromPath: string | undefined): string {
  const own = given?.namespace ?? "";
  if (fromPath !== undefined && own !== "" && own !== fromPath) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const namespace = fromPath ?? own;
  if (namespace === "") throw badRequest(`an empty namespace may not be set during creation`);
  return namespace;
}

/** The metadata of a changed object: what the caller may change from `given`, the rest from `old`. */
export function metadataForUpdate(given: ObjectMeta | undefined, old: Stored): ObjectMeta {
  const before = old.metadata;
  const meta: Meta = { ...given };
  for (const key of [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
    "uid",
    "resourceVersion",
    "name",
    "namespace",
    "managedFields",
  ] as const) {
    if (before[key] === undefined) delete meta[key];
    else (meta as Record<string, unknown>)[key] = before[key];
  }
  if (given?.generateName !== undefined) meta.generateName = given.generateName;
  delete meta.selfLink;
  return withoutEmpty(meta);
}

/** Without empty maps and lists, which the API does not keep in metadata. */
function withoutEmpty(meta: Meta): ObjectMeta {
  for (const key of ["labels", "annotations", "finalizers", "ownerReferences"] as const) {
    const value = meta[key];
    if (value === null || (value !== undefined && Object.keys(value).length === 0)) delete meta[key];
  }
  if (meta.generateName === "") delete meta.generateName;
  const { ownerReferences = [] } = meta;
  if (ownerReferences.length > 1) meta.ownerReferences = withoutRepeated(ownerReferences);
  return meta;
}

/** Most bytes of all annotations together. */
const annotationBytesMax = 256 * 1024;

/** Finalizers without a prefix that the API knows. */
const plainFinalizers: ReadonlySet<string> = new Set(["orphan", "foregroundDeletion", "kubernetes"]);

/** Problems of the metadata of any object; not many more than an answer reports. */
export function metadataProblems(kind: Kind, meta: ObjectMeta): FieldProblem[] {
  const at = "metadata";
  const problems: FieldProblem[] = [];
  if (meta.generateName !== undefined) {
    // The random suffix follows, so it may end with dashes.
    const base = meta.generateName.replace(/-+$/, "");
    if (base !== "" || meta.generateName === "") {
      problems.push(
        ...nameProblems(kind, base).map((p) => invalidValue(`${at}.generateName`, meta.generateName, p)),
      );
    }
  }
  if ((meta.name ?? "") === "") {
    problems.push(requiredValue(`${at}.name`, "name or generateName is required"));
  } else {
    const why = nameProblems(kind, meta.name ?? "");
    problems.push(...why.map((p) => invalidValue(`${at}.name`, meta.name, p)));
  }
  for (const [key, value] of Object.entries(meta.labels ?? {})) {
    spendTime();
    if (problems.length > problemsMax) break;
    problems.push(...qualifiedNameProblems(key).map((p) => invalidValue(`${at}.labels`, key, p)));
    problems.push(...labelValueProblems(String(value)).map((p) => invalidValue(`${at}.labels`, value, p)));
  }
  let bytes = 0;
  for (const [key, value] of Object.entries(meta.annotations ?? {})) {
    spendTime();
    if (problems.length <= problemsMax) {
      problems.push(
        // Of the keys of annotations case does not matter (apimachinery, ValidateAnnotations).
        ...qualifiedNameProblems(key.toLowerCase()).map((p) => invalidValue(`${at}.annotations`, key, p)),
      );
    }
    bytes += Buffer.byteLength(key) + Buffer.byteLength(String(value));
  }
  if (bytes > annotationBytesMax) {
    const message = `Too long: must have at most ${annotationBytesMax} bytes`;
    problems.push({ reason: "FieldValueTooLong", message, field: `${at}.annotations` });
  }
  for (const owner of meta.ownerReferences ?? []) {
    spendTime();
    if (problems.length > problemsMax) break;
    problems.push(...ownerProblems(owner, `${at}.ownerReferences`));
  }
  problems.push(...controllerProblems(meta.ownerReferences ?? [], `${at}.ownerReferences`));
  for (const [i, finalizer] of (meta.finalizers ?? []).entries()) {
    spendTime();
    if (problems.length > problemsMax) break;
    const item = kind.anyFinalizers === true ? undefined : `${at}.finalizers[${i}]`;
    problems.push(...finalizerProblems(finalizer, item, `${at}.finalizers`));
  }
  if (meta.finalizers?.includes("orphan") && meta.finalizers.includes("foregroundDeletion")) {
    const why = "finalizer orphan and foregroundDeletion cannot be both set";
    problems.push(invalidValue(`${at}.finalizers`, meta.finalizers, why));
  }
  return problems;
}

/** @param at where it must be qualified or known; undefined where any name will do */
function finalizerProblems(finalizer: string, at: string | undefined, list: string): FieldProblem[] {
  const problems = qualifiedNameProblems(finalizer).map((why) => invalidValue(list, finalizer, why));
  if (at !== undefined && !finalizer.includes("/") && !plainFinalizers.has(finalizer)) {
    const why = "name is neither a standard finalizer name nor is it fully qualified";
    problems.push(invalidValue(at, finalizer, why));
  }
  return problems;
}

/** Problems of the finalizers in a namespace's spec. */
export function namespaceFinalizerProblems(finalizers: readonly string[], at: string): FieldProblem[] {
  return finalizers.flatMap((finalizer) => finalizerProblems(finalizer, at, at));
}

function ownerProblems(owner: OwnerReference, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const [group = "", version, ...more] = (owner.apiVersion ?? "").split("/", 3);
  // What does not parse has no version.
  if ((version ?? group) === "" || more.length > 0)
    problems.push(invalidValue(`${at}.apiVersion`, owner.apiVersion ?? "", "version must not be empty"));
  if (!owner.kind) problems.push(invalidValue(`${at}.kind`, owner.kind ?? "", "kind must not be empty"));
  if (!owner.name) problems.push(invalidValue(`${at}.name`, owner.name ?? "", "name must not be empty"));
  if (!owner.uid) problems.push(invalidValue(`${at}.uid`, owner.uid ?? "", "uid must not be empty"));
  if (owner.kind === "Event" && owner.apiVersion === "v1")
    problems.push(invalidValue(at, owner, "/v1, Kind=Event is disallowed from being an owner"));
  return problems;
}

/** At most one owner controls an object. */
function controllerProblems(owners: readonly OwnerReference[], at: string): FieldProblem[] {
  const [first, second] = owners.filter(({ controller }) => controller === true);
  if (first === undefined || second === undefined) return [];
  const why = `Only one reference can have Controller set to true. Found "true" in references for ${first.name} and ${second.name}`;
  return [invalidValue(at, owners, why)];
}

/** One reference for each owner (apiserver handlers dedupOwnerReferences, from 1.20 on). */
function withoutRepeated(owners: readonly OwnerReference[]): OwnerReference[] {
  const seen = new Set<string>();
  return owners.filter(({ uid }) => {
    spendTime();
    return !seen.has(uid) && seen.add(uid);
  });
}

function nameProblems(kind: Kind, name: string): string[] {
  if (kind.names === "label") return labelProblems(name);
  if (kind.names === "path-segment") return pathSegmentProblems(name);
  return subdomainProblems(name);
}

/** Problems of a change of metadata. */
export function metadataUpdateProblems(next: ObjectMeta, old: Stored): FieldProblem[] {
  if (old.metadata.deletionTimestamp === undefined) return [];
  const before = new Set(old.metadata.finalizers);
  const added = (next.finalizers ?? []).filter((finalizer) => !before.has(finalizer));
  if (added.length === 0) return [];
  const list = added.map((finalizer) => JSON.stringify(finalizer)).join(", ");
  const why = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`;
  return [forbiddenValue("metadata.finalizers", why)];
}

/** True when anything but metadata and status differs; the status of a custom resource counts unless it is a sub-resource. */
export function specChanged(of: Kind, next: KubeObject, old: KubeObject): boolean {
  const statusCounts = of.custom !== undefined && of.statusSubresource !== true;
  const rest = (o: KubeObject) => {
    const { metadata: _m, status, ...others } = o as KubeObject & { status?: unknown };
    return statusCounts ? { ...others, ...(status === undefined ? {} : { status }) } : others;
  };
  return !sameJson(rest(next), rest(old));
}
