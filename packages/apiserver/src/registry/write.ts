/** Creating, updating and patching objects. */
import type { KubeObject, ObjectMeta, Stored } from "@longshore/kube";
import type { ObjectAnswer } from "../api/api-request.ts";
import { excessOf } from "../api/bounded.ts";
import {
  alreadyExists,
  apiError,
  badRequest,
  conflict,
  type FieldProblem,
  forbiddenValue,
  invalid,
  invalidValue,
  requiredValue,
  unsupportedMediaType,
} from "../api/errors.ts";
import { type Kind, storedApiVersion } from "../api/kind.ts";
import { generatedName } from "../api/names.ts";
import { own, sameJson } from "../api/own.ts";
import { assertAllowed, attributesOfRequest } from "../authorization/authorizer.ts";
import { applyJsonPatch } from "../patch/apply-json-patch.ts";
import { applyMergePatch } from "../patch/apply-merge-patch.ts";
import { applyStrategicPatch } from "../patch/apply-strategic-patch.ts";
import { decodeObject, decodeProblem } from "../schema/decode-object.ts";
import { fieldProblem, unknownFields } from "../schema/unknown-fields.ts";
import { customBody, customPatched, customPatchTypes, definitionTerminating } from "./custom-body.ts";
import { finishDeletion } from "./delete-object.ts";
import {
  appliedTo,
  managedByCreate,
  managedByUpdate,
  withManagedFields,
  withoutNewTimes,
} from "./managed-fields.ts";
import {
  metadataForCreate,
  metadataForUpdate,
  metadataProblems,
  metadataUpdateProblems,
  specChanged,
} from "./metadata.ts";
import {
  commitOne,
  existing,
  groupResource,
  isDryRun,
  type KindRequest,
  type RegistryContext,
} from "./registry-context.ts";
import { requireNamespace } from "./require-namespace.ts";
import { apiVersionOf, servedForm, storedForm } from "./served-form.ts";
import { createdThroughWebhooks, updatedThroughWebhooks } from "./write-through-webhooks.ts";

type WithStatus = KubeObject & { status?: unknown };

/** POST of a new object. */
export function createObject(context: RegistryContext, request: KindRequest): ObjectAnswer {
  const given = bodyObject(request);
  const { of } = request;
  if (of.namespaced) {
    const namespace = request.namespace ?? given.metadata?.namespace ?? "";
    // The rules of metadata report a missing namespace.
    if (namespace !== "") requireNamespace(context, request, namespace, given.metadata?.name ?? "");
  }
  if (
    request.name !== undefined &&
    given.metadata?.name !== undefined &&
    request.name !== given.metadata.name
  ) {
    throw nameMismatch(request, given);
  }
  if (of.custom?.isTerminating === true) throw definitionTerminating(request);
  const metadata = withFreeName(
    context,
    request,
    metadataForCreate(of, given.metadata, request.namespace, context, isDryRun(request)),
    given,
  );
  const named = { ...given, apiVersion: storedApiVersion(of), kind: of.kind, metadata };
  const filled = of.defaults?.(named) ?? named;
  const { managedFields } = request.applied ?? {
    managedFields: managedByCreate(context, request, filled, given.metadata),
  };
  const admit = (object: KubeObject) =>
    context.admission.onCreate(
      context,
      request,
      withManagedFields(of.prepareCreate?.(object) ?? object, managedFields),
    );
  let object = admit(filled);
  if (context.webhooks !== undefined) {
    object = createdThroughWebhooks(context, request, object, given.metadata, admit);
  }
  const problems = [
    ...metadataProblems(of, object.metadata ?? {}),
    ...(of.validate?.(object) ?? []),
    ...(of.validateCreate?.(object) ?? []),
  ];
  if (problems.length > 0) throw invalid((of.storedAs ?? of).group, of.kind, metadata.name ?? "", problems);
  context.webhooks?.validate({ operation: "CREATE", request, object: own(object) });
  const identity = { namespace: metadata.namespace ?? "", name: object.metadata?.name ?? "" };
  // After validation, as the reference finds it out in its store: an invalid object is 422, its name taken or not.
  const there = request.table.get(identity.namespace, identity.name);
  if (there !== undefined) throw alreadyExists(groupResource(of), identity.name, there);
  if (isDryRun(request)) return { type: "object", code: 201, object: own(object) };
  context.admission.beforeCommit(context, request, object, undefined);
  return { type: "object", code: 201, object: commitOne(context, request, identity, object) };
}

/** Most names that are tried for an object that leaves its name to the server. */
const generatedNamesMax = 8;

/** Replaces a generated name that is in use by another one, from 1.32 on (KEP-4420). */
function withFreeName(
  { version, random }: RegistryContext,
  { table }: KindRequest,
  metadata: ObjectMeta,
  { metadata: given }: KubeObject,
): ObjectMeta {
  const { generateName = "", namespace = "" } = metadata;
  if (given?.name || generateName === "" || !version.has("generateNameRetries")) return metadata;
  let { name = "" } = metadata;
  for (let tried = 1; tried < generatedNamesMax && table.get(namespace, name) !== undefined; tried++) {
    name = generatedName(generateName, random);
  }
  return { ...metadata, name };
}

/** PUT of a whole object, or of its status. */
export function updateObject(context: RegistryContext, request: KindRequest, status = false): ObjectAnswer {
  const given = bodyObject(request);
  const name = given.metadata?.name ?? "";
  if (name !== "" && name !== request.name) throw nameMismatch(request, given);
  if (name === "") {
    throw badRequest(
      `the name of the object (${request.name} based on URL) was undeterminable: name must be provided`,
    );
  }
  const inBody = given.metadata?.namespace ?? "";
  if (request.of.namespaced && inBody !== "" && inBody !== request.namespace) {
    throw namespaceMismatch(request, inBody);
  }
  const old = request.table.get(request.namespace ?? "", request.name ?? "");
  if (old === undefined && request.of.createsOnUpdate === true && !status) {
    mayCreate(context, request);
    return createObject(context, { ...request, body: withoutVersion(given) });
  }
  return replace(context, request, existing(request), given, status);
}

function withoutVersion(object: KubeObject): KubeObject {
  const { resourceVersion: _, ...metadata } = object.metadata ?? {};
  return { ...object, metadata };
}

function nameMismatch(request: KindRequest, given: KubeObject): Error {
  return badRequest(
    `the name of the object (${given.metadata?.name}) does not match the name on the URL (${request.name})`,
  );
}

function namespaceMismatch(request: KindRequest, given: string): Error {
  return badRequest(
    `the namespace of the object (${given}) does not match the namespace on the request (${request.namespace})`,
  );
}

/** PATCH of an object or of its status. */
export function patchObject(context: RegistryContext, request: KindRequest, status = false): ObjectAnswer {
  checkPatchOptions(request);
  if (request.patchType === "apply") return applyObject(context, request, status);
  const old = existing(request);
  const served = servedForm(request.of, request.version, old);
  const patched = decoded(context, request, withKind(request, applyPatchTo(request, served), served));
  return putPatched(context, request, old, patched, status);
}

/** The kind of the result of a patch: a strategic patch cannot set it, others may omit it. */
function withKind({ patchType }: KindRequest, patched: unknown, { kind, apiVersion }: Stored): unknown {
  if (!isObject(patched)) return patched;
  if (patchType === "strategic") return { ...patched, apiVersion, kind };
  if (patched.kind !== undefined && patched.apiVersion !== undefined) return patched;
  return { apiVersion, kind, ...patched };
}

/** Server-side apply; creates a missing object. */
function applyObject(context: RegistryContext, request: KindRequest, status: boolean): ObjectAnswer {
  const old = status ? existing(request) : request.table.get(request.namespace ?? "", request.name ?? "");
  if (old === undefined) mayCreate(context, request);
  const { object, managedFields } = appliedTo(context, request, old);
  const patched = decoded(context, { ...request, fromWire: true }, object) as KubeObject;
  const applied: KindRequest = { ...request, applied: { managedFields } };
  if (old !== undefined) return putPatched(context, applied, old, patched, status);
  const { name = request.name, namespace = request.namespace } = patched.metadata ?? {};
  if (request.of.namespaced && namespace !== request.namespace) {
    throw namespaceMismatch(request, namespace ?? "");
  }
  const body = withoutVersion({
    ...patched,
    metadata: { ...patched.metadata, ...(name === undefined ? {} : { name }) },
  });
  return createObject(context, { ...applied, body });
}

/** Writing what is not there takes the right to create it, whatever the verb (handlers/update.go, patch.go). @throws KubeApiError 403 */
function mayCreate({ authorizer }: RegistryContext, request: KindRequest): void {
  assertAllowed(authorizer, attributesOfRequest({ ...request, verb: "create" }));
}

/** Options that only an apply has, and those that it must have. @throws KubeApiError 422 */
function checkPatchOptions({ patchType, query }: KindRequest): void {
  if (patchType === "apply") {
    if ((query.fieldManager ?? "") !== "") return;
    throw invalid("meta.k8s.io", "PatchOptions", "", [
      requiredValue("fieldManager", "is required for apply patch"),
    ]);
  }
  if (query.force === undefined) return;
  throw invalid("meta.k8s.io", "PatchOptions", "", [
    forbiddenValue("force", "may not be specified for non-apply patch"),
  ]);
}

/** Puts the result of a patch in the place of the object. */
function putPatched(
  context: RegistryContext,
  request: KindRequest,
  old: Stored,
  patched: unknown,
  status: boolean,
): ObjectAnswer {
  const served = servedForm(request.of, request.version, old);
  if (typeof patched !== "object" || patched === null || Array.isArray(patched)) {
    throw invalidPatch("the result of the patch is not an object");
  }
  const asServed = patched as KubeObject;
  if (asServed.kind !== served.kind || asServed.apiVersion !== served.apiVersion) {
    throw invalidPatch("a patch cannot change kind or apiVersion");
  }
  const next = storedForm(request.of, request.version, asServed);
  if (next.metadata?.name !== old.metadata.name) throw nameMismatch(request, next);
  const namespace = next.metadata.namespace ?? "";
  if (request.of.namespaced && namespace !== "" && namespace !== old.metadata.namespace) {
    throw namespaceMismatch(request, namespace);
  }
  if ((next.metadata.uid ?? "") !== "" && next.metadata.uid !== old.metadata.uid) {
    throw invalid(request.of.group, request.of.kind, old.metadata.name, [
      invalidValue("metadata.uid", next.metadata.uid ?? "", "field is immutable"),
    ]);
  }
  return replace(context, request, old, next, status);
}

/** What came over the wire is held to the schema: unknown members go, wrong types are refused. */
function decoded({ version }: RegistryContext, request: KindRequest, patched: unknown): unknown {
  const { group, kind, custom } = request.of;
  if (custom !== undefined) return customPatched(request, patched);
  if (request.fromWire !== true) return patched;
  const problem = decodeProblem(group, kind, patched);
  if (problem !== undefined) throw invalidPatch(problem);
  const strict = fieldProblem(request.fields, () =>
    unknownFields(request.of, request.version, patched, version),
  );
  if (strict !== undefined) throw invalidPatch(strict);
  return decodeObject(group, kind, patched, version, request.version);
}

function applyPatchTo(request: KindRequest, old: Stored): unknown {
  const { body, of } = request;
  switch (request.patchType) {
    case "json": {
      const patched = applyJsonPatch(old, body);
      // Each copy operation can double the whole.
      const excess = excessOf(patched);
      if (excess !== undefined) throw invalidPatch(`the result of the patch is too large: ${excess}`);
      return patched;
    }
    case "strategic":
      if (of.custom !== undefined) throw unsupportedMediaType(customPatchTypes);
      if (body === null) return old;
      if (!isObject(body)) throw badRequest("a strategic merge patch is an object");
      return applyStrategicPatch(old, body, of);
    default:
      if (!isObject(body)) throw invalidPatch("a merge patch is an object");
      return applyMergePatch(old, body);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalidPatch(why: string): Error {
  const problem = invalidValue("patch", why, why);
  return apiError(422, "Invalid", ` "" is invalid: ${problem.field}: ${problem.message}`, {
    causes: [{ reason: problem.reason, message: problem.message, field: problem.field }],
  });
}

/** Puts `given` in the place of `old` by the rules of the kind. */
export function replace(
  context: RegistryContext,
  request: KindRequest,
  old: Stored,
  given: KubeObject,
  status: boolean,
): ObjectAnswer {
  const { of } = request;
  checkPreconditions(request, old, given);
  const filled = fill(of, given, old);
  const { managedFields } = request.applied ?? {
    managedFields: managedByUpdate(context, request, old, filled, given.metadata),
  };
  const admit = (object: KubeObject) => {
    const shaped = status ? shapeStatus(of, object, old) : shape(of, fill(of, object, old), old);
    const next = own(withManagedFields(shaped, managedFields));
    if (!status) return own(context.admission.onUpdate(context, request, next, old));
    context.admission.onStatusUpdate(context, request, next, old);
    return next;
  };
  let admitted = admit(given);
  if (context.webhooks !== undefined) {
    admitted = updatedThroughWebhooks(context, request, admitted, given.metadata, old, admit);
  }
  const problems = [
    ...metadataProblems(of, admitted.metadata ?? {}),
    ...metadataUpdateProblems(admitted.metadata ?? {}, old),
    ...(status
      ? (of.validateStatusUpdate?.(admitted, old) ?? [])
      : [...(of.validate?.(admitted) ?? []), ...(of.validateUpdate?.(admitted, old) ?? [])]),
  ];
  if (problems.length > 0)
    throw invalid((of.storedAs ?? of).group, of.kind, old.metadata.name, dropRepeated(problems));
  admitted = withoutNewTimes(context, admitted, old);
  context.webhooks?.validate({ operation: "UPDATE", request, object: admitted, old });
  // As the reference's store: an update that changes nothing keeps the resource version, and no watch sees it.
  if (sameJson(admitted, old)) return { type: "object", code: 200, object: old };
  if (isDryRun(request)) return { type: "object", code: 200, object: admitted };
  if (!status) context.admission.beforeCommit(context, request, admitted, old);
  const identity = { namespace: old.metadata.namespace ?? "", name: old.metadata.name };
  const finished = finishDeletion(context, request, identity, admitted);
  if (finished !== undefined) return { type: "object", code: 200, object: finished };
  return { type: "object", code: 200, object: commitOne(context, request, identity, admitted) };
}

function dropRepeated(problems: readonly FieldProblem[]): FieldProblem[] {
  const seen = new Set<string>();
  return problems.filter((p) => {
    const key = `${p.field}\n${p.message}`;
    return !seen.has(key) && seen.add(key);
  });
}

function checkPreconditions(request: KindRequest, old: Stored, given: KubeObject): void {
  const { of } = request;
  const { uid, resourceVersion = "" } = given.metadata ?? {};
  if (uid !== undefined && uid !== "" && uid !== old.metadata.uid) {
    const path = `/registry/${of.plural}/${of.namespaced ? `${old.metadata.namespace}/` : ""}${old.metadata.name}`;
    const why = `StorageError: invalid object, Code: 4, Key: ${path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`;
    throw conflict(groupResource(of), old.metadata.name, why);
  }
  if (resourceVersion === "" || resourceVersion === "0") {
    if (of.updateNeedsVersion === "validated") {
      const problem = invalidValue("metadata.resourceVersion", "", "must be specified for an update");
      throw invalid(of.group, of.kind, old.metadata.name, [problem]);
    }
    if (of.updateNeedsVersion !== true) return;
    throw apiError(
      422,
      "Invalid",
      `${of.group === "" ? of.plural : `${of.plural}.${of.group}`} "${old.metadata.name}" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update`,
      {
        name: old.metadata.name,
        ...(of.group === "" ? {} : { group: of.group }),
        kind: of.plural,
        causes: [
          {
            reason: "FieldValueInvalid",
            message: "Invalid value: 0x0: must be specified for an update",
            field: "metadata.resourceVersion",
          },
        ],
      },
    );
  }
  if (!/^\d+$/.test(resourceVersion)) {
    const why = `strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`;
    throw apiError(500, "", why);
  }
  if (resourceVersion !== old.metadata.resourceVersion) throw conflict(groupResource(of), old.metadata.name);
}

/** What is given, with what only the server sets and with the defaults. */
function fill(of: Kind, given: KubeObject, old: Stored): KubeObject {
  const metadata = metadataForUpdate(given.metadata, old);
  const filled = { ...given, apiVersion: storedApiVersion(of), kind: of.kind, metadata };
  return of.defaults?.(filled) ?? filled;
}

function shape(of: Kind, filled: KubeObject, old: Stored): KubeObject {
  let next: WithStatus = filled;
  if (of.statusSubresource === true) next = withStatusOf(next, old);
  next = of.prepareUpdate?.(next, old) ?? next;
  if (of.countsGenerations === true && (specChanged(of, next, old) || annotationsCount(of, next, old))) {
    next = { ...next, metadata: { ...next.metadata, generation: (old.metadata.generation ?? 0) + 1 } };
  }
  return next;
}

/** A Deployment's annotations count as its spec does (apps/deployment strategy). */
function annotationsCount(of: Kind, next: KubeObject, old: Stored): boolean {
  return of.kind === "Deployment" && !sameJson(next.metadata?.annotations, old.metadata.annotations);
}

function withStatusOf(next: WithStatus, old: WithStatus): WithStatus {
  const { status: _, ...rest } = next;
  return old.status === undefined ? rest : { ...rest, status: old.status };
}

/** A write to the status: everything else stays as it was, but for metadata where the kind allows it. */
function shapeStatus(of: Kind, given: WithStatus, old: Stored<WithStatus>): KubeObject {
  const metadata = of.statusKeepsMetadata === true ? old.metadata : metadataForUpdate(given.metadata, old);
  const { status: _, ...rest } = old;
  let next: WithStatus = { ...rest, metadata };
  if (given.status !== undefined) next = { ...next, status: given.status };
  next = of.defaults?.(next) ?? next;
  return of.prepareStatusUpdate?.(next, old) ?? next;
}

/** The body as an object of the request's kind. @throws KubeApiError 400 */
export function bodyObject(request: KindRequest): KubeObject {
  const { body, of, version } = request;
  if (!isObject(body)) throw badRequest("the body of the request is not an object");
  const object = body as KubeObject;
  if (of.custom !== undefined) return customBody(request, object);
  const expected = apiVersionOf(of, version);
  const apiVersion = object.apiVersion ?? expected;
  const kind = object.kind ?? of.kind;
  if (typeof kind !== "string" || typeof apiVersion !== "string") {
    throw badRequest("the kind and the apiVersion of the object must be texts");
  }
  if (kind === of.kind && request.fromWire === true && apiVersion !== expected && apiVersion !== "") {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
    );
  }
  const served = [storedApiVersion(of), ...of.versions.map((v) => apiVersionOf(of, v))];
  if (kind !== of.kind || !served.includes(apiVersion)) {
    throw badRequest(
      `${kind} in version "${apiVersion.split("/").at(-1)}" cannot be handled as a ${of.kind}: the object is a ${apiVersion} ${kind}, and not a ${expected} ${of.kind}`,
    );
  }
  return own(storedForm(of, version, object));
}
