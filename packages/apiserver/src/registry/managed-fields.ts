/** Updates `metadata.managedFields` on every write: the manager, the operation, and the fields that it manages now. */

import type { KubeObject, ObjectMeta, Stored } from "@longshore/kube";
import { apiTime } from "@longshore/kube/basics";
import { apiError, badRequest } from "../api/errors.ts";
import type { Kind } from "../api/kind.ts";
import { sameJson } from "../api/own.ts";
import { appliedProblems } from "../apply/applied-problems.ts";
import { applyConflict } from "../apply/apply-conflict.ts";
import {
  applyConfiguration,
  conflictsBeyond,
  managersAfterCreate,
  managersAfterUpdate,
  type Writer,
} from "../apply/field-manager.ts";
import { type FieldSet, setOf } from "../apply/field-set.ts";
import type { FieldView } from "../apply/field-view.ts";
import { lastAppliedFields, migratingManager, withLastApplied } from "../apply/last-applied-fields.ts";
import {
  isReset,
  type ManagedFieldsEntry,
  type Managers,
  noManagers,
  type Operation,
  readManagers,
  writeManagers,
} from "../apply/managers.ts";
import { typeOfKind } from "../schema/type-of-kind.ts";
import type { KindRequest, RegistryContext } from "./registry-context.ts";
import { apiVersionOf, servedForm } from "./served-form.ts";
import { excessiveBytes } from "./stored-size.ts";

type Entries = readonly ManagedFieldsEntry[] | undefined;

/** The object with these entries, or with none. */
export function withManagedFields(object: KubeObject, entries: Entries): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata ?? {};
  if (entries === undefined) return { ...object, metadata };
  return { ...object, metadata: { ...metadata, managedFields: entries } as ObjectMeta };
}

/**
 * The changed object; the old one where only the times of its managers have changed, from 1.24 on (apiserver, fieldmanager
 * IgnoreManagedFieldsTimestampsTransformer). The server's rules may take back what the manager is noted to have changed.
 */
export function withoutNewTimes({ version }: RegistryContext, next: KubeObject, old: Stored): KubeObject {
  if (!version.has("managersTimesIgnored")) return next;
  const [now = [], before = []] = [entriesOf(next.metadata), entriesOf(old.metadata)];
  if (now === before || now.length !== before.length) return next;
  const isSame = now.every((entry, i) => sameJson({ ...entry, time: "" }, { ...before[i], time: "" }));
  if (!isSame) return next;
  return sameJson(withManagedFields(next, before), old) ? old : next;
}

/** Maximum length of a manager name that is derived from the user agent. */
const managerLengthMax = 128;

/** The manager name of clients that send none. */
const unnamedManager = "unknown";

/** The manager of fields that were set before managed fields existed. */
const beforeFirstApply = "before-first-apply";

const emptyObject: KubeObject = Object.freeze({});

/** The entries of a new object. @param filled with its defaults, before the server sets what only it sets */
export function managedByCreate(
  context: RegistryContext,
  request: KindRequest,
  filled: KubeObject,
  given: ObjectMeta | undefined,
): Entries {
  // It is refused when it comes to be stored, once all else has been looked at.
  if (excessiveBytes(request.of, filled) !== undefined) return undefined;
  const view = viewOf(context, request);
  const managers = readManagers(entriesOf(given)) ?? noManagers;
  const writer = writerOf(context, request, "Update");
  const object = served(request, filled);
  if (managers.size === 0) return writeManagers(managersAfterCreate(view, object, writer));
  return writeManagers(managersAfterUpdate(view, emptyObject, object, managers, writer));
}

/** The entries of an object after an update or a patch. @param filled what the client wants, with its defaults */
export function managedByUpdate(
  context: RegistryContext,
  request: KindRequest,
  old: Stored,
  filled: KubeObject,
  given: ObjectMeta | undefined,
): Entries {
  const before = entriesOf(old.metadata);
  // The scale is a separate object without managed fields.
  if (request.subresource === "scale" && !context.version.has("managedFieldsSubresource")) return before;
  const wanted = entriesOf(given);
  if (isReset(wanted)) return undefined;
  const isAsBefore = wanted === undefined || sameJson(wanted, before);
  let managers = isAsBefore ? undefined : readManagers(wanted);
  if (managers === undefined || managers.size === 0) managers = readManagers(before);
  // An object without managers gets none before the first apply.
  if (managers === undefined || managers.size === 0) return undefined;
  const view = viewOf(context, request);
  const writer = writerOf(context, request, "Update");
  const after = managersAfterUpdate(view, served(request, old), served(request, filled), managers, writer);
  if (after === managers && isAsBefore) return before;
  return writeManagers(after);
}

/** The object that an apply makes, in the version of the request, and its entries. */
export interface AppliedObject {
  readonly object: KubeObject;
  readonly managedFields: Entries;
}

/**
 * Applies the request's body.
 * @param old undefined when there is no object yet
 * @throws KubeApiError 400 and 500 for what is no configuration of the kind, 409 for fields that others manage
 */
export function appliedTo(
  context: RegistryContext,
  request: KindRequest,
  old: Stored | undefined,
): AppliedObject {
  const view = viewOf(context, request);
  const configuration = configurationOf(view, request);
  let live: KubeObject = old === undefined ? emptyObject : withoutEntries(served(request, old));
  let managers: Managers = readManagers(entriesOf(old?.metadata)) ?? noManagers;
  if (old !== undefined && managers.size === 0) {
    const writer = { ...writerOf(context, request, "Update"), manager: beforeFirstApply };
    managers = managersAfterCreate(view, live, writer);
  }
  if (old === undefined) live = { apiVersion: view.apiVersion, kind: request.of.kind };
  const writer = writerOf(context, request, "Apply");
  const isMigrating = writer.manager === migratingManager;
  const force = request.query.force === true;
  let applied = applyConfiguration(view, live, configuration, managers, writer, force);
  if (applied.type === "conflicts") {
    const allowed = isMigrating ? lastAppliedFields(view, live) : undefined;
    const { conflicts } = applied;
    const left = allowed === undefined ? conflicts : conflictsBeyond(conflicts, allowed);
    if (left.length > 0) throw applyConflict(left);
    applied = applyConfiguration(view, live, configuration, managers, writer, true);
  }
  if (applied.type === "conflicts") throw applyConflict(applied.conflicts);
  const object = isMigrating ? withLastApplied(applied.object, configuration) : applied.object;
  return {
    object,
    // Unchanged entries keep their times: an apply that changes nothing writes nothing.
    managedFields: applied.managers === managers ? entriesOf(old?.metadata) : writeManagers(applied.managers),
  };
}

function configurationOf(view: FieldView, request: KindRequest): KubeObject {
  const body = (request.body ?? {}) as KubeObject;
  if (typeof body !== "object" || Array.isArray(body)) {
    throw badRequest("error decoding YAML: what is applied must be an object");
  }
  if (body.apiVersion !== view.apiVersion) {
    throw badRequest(
      `Incorrect version specified in apply patch. Specified patch version: ${body.apiVersion ?? ""}, expected: ${view.apiVersion}`,
    );
  }
  if (body.metadata?.managedFields !== undefined) throw badRequest("metadata.managedFields must be nil");
  if (body.kind !== request.of.kind) {
    throw badRequest(`what is applied is a ${String(body.kind)}, and not a ${request.of.kind}`);
  }
  const problems = appliedProblems(view.type, body);
  if (problems.length > 0) {
    const text = problems.length === 1 ? problems[0] : `errors:\n  ${problems.join("\n  ")}`;
    throw apiError(500, "", `failed to create typed patch object: ${text}`);
  }
  return body;
}

function entriesOf(metadata: ObjectMeta | undefined): Entries {
  const { managedFields } = (metadata ?? {}) as { readonly managedFields?: unknown };
  return Array.isArray(managedFields) ? (managedFields as readonly ManagedFieldsEntry[]) : undefined;
}

function withoutEntries(object: KubeObject): KubeObject {
  if (object.metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** The object in the version of the request; that of kinds that are alike in all versions is as good. */
function served({ of, version }: KindRequest, object: KubeObject): KubeObject {
  return of.conversion === undefined ? object : servedForm(of, version, object as Stored);
}

function writerOf(context: RegistryContext, request: KindRequest, operation: Operation): Writer {
  const { query, userAgent, of, version, subresource = "" } = request;
  const named = query.fieldManager ?? "";
  const manager = named !== "" ? named : managerOf(userAgent ?? "");
  return {
    manager: manager === "" ? unnamedManager : manager,
    operation,
    apiVersion: apiVersionOf(of, version),
    subresource: context.version.has("managedFieldsSubresource") ? subresource : "",
    time: apiTime(context.clock.now()),
  };
}

/** The name of a client's program, as its user agent begins (apiserver, prefixFromUserAgent). */
function managerOf(userAgent: string): string {
  const [name = ""] = userAgent.split("/", 1);
  const printable = /^[^\p{C}\p{Z}]*(?: [^\p{C}\p{Z}]*)*/u.exec(name)?.[0] ?? "";
  let manager = printable;
  while (Buffer.byteLength(manager) > managerLengthMax) manager = manager.slice(0, -1);
  return manager;
}

/** The views of a kind, by version, path and emulated version: they are asked for at every write. */
const views = new WeakMap<Kind, Map<string, FieldView>>();

function viewOf(context: RegistryContext, request: KindRequest): FieldView {
  const { of, version } = request;
  let ofKind = views.get(of);
  if (ofKind === undefined) {
    ofKind = new Map();
    views.set(of, ofKind);
  }
  const key = `${context.version.minor} ${version} ${request.subresource ?? ""}`;
  let view = ofKind.get(key);
  if (view === undefined) {
    view = makeView(context, request);
    ofKind.set(key, view);
  }
  return view;
}

function makeView({ version: emulated }: RegistryContext, request: KindRequest): FieldView {
  const { of, version } = request;
  const type = typeOfKind(of, version, emulated);
  return {
    apiVersion: apiVersionOf(of, version),
    type,
    convert(object, apiVersion) {
      const to = of.versions.find((served) => apiVersionOf(of, served) === apiVersion);
      if (to === undefined) return undefined;
      if (of.conversion === undefined || to === version) return object;
      const stored = of.conversion.toStored(object, version);
      return servedForm(of, to, stored as Stored);
    },
    ignored: emulated.has("resetFields") ? resetBy(request) : undefined,
    appliedOrder: emulated.has("appliedOrder"),
    emptyMembers: emulated.has("emptyFieldsApplied"),
  };
}

/** Fields that writes through the request's path do not change (rest.ResetFieldsStrategy). */
function resetBy({ of, subresource }: KindRequest): FieldSet | undefined {
  if (subresource === "status") {
    return of.statusKeepsMetadata === true ? setOf(["f:spec"], ["f:metadata"]) : setOf(["f:spec"]);
  }
  return of.statusSubresource === true && subresource === undefined ? setOf(["f:status"]) : undefined;
}
