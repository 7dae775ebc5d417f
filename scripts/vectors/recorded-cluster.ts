/**
 * A cluster as a case describes it: objects that stay as they are, and a record of what was asked. Stands in
 * for both the API server and its caches, as in the recording.
 */
import { isDeepStrictEqual } from "node:util";
import {
  apiVersionOf,
  type KubeClient,
  type KubeObject,
  KubeApiError,
  keyOf,
  type Patch,
  type Resource,
  type Stored,
} from "@longshore/kube";

/** An object of a case. */
export type CaseObject = KubeObject & { readonly [member: string]: unknown };

/** What was asked of the API server. `result`: the part of the object that a patch leaves behind. */
export interface RecordedAction {
  readonly verb: string;
  readonly resource: string;
  readonly name: string;
  readonly namespace?: string;
  readonly subresource?: string;
  readonly result?: unknown;
}

/** The objects of a case with their record. */
export class RecordedCluster {
  readonly actions: RecordedAction[] = [];
  readonly #objects: readonly CaseObject[];

  readonly #emptyFinalizers: boolean;

  /**
   * @param emptyFinalizers objects without finalizers had an empty list of them in the recorded caches, and none on
   * the server, which then refused a test for the empty list; the cases do not write the difference
   */
  constructor(objects: readonly CaseObject[], emptyFinalizers = false) {
    this.#objects = objects;
    this.#emptyFinalizers = emptyFinalizers;
  }

  /** Objects of one kind, as a cache holds them. */
  cache<T extends KubeObject>(resource: Resource<T>) {
    const list = () =>
      this.#objects
        .filter(({ kind }) => kind === resource.kind)
        .map((object) => ({ apiVersion: apiVersionOf(resource), ...(this.#emptyFinalizers ? withFinalizers(object) : object) }) as unknown as Stored<T>);
    return { list, get: (key: string) => list().find((object) => keyOf(object) === key) };
  }

  /** The client of the case; it knows only what the components call in a case. */
  client(): KubeClient {
    const get = async <T extends KubeObject>(resource: Resource<T>, ref: { name: string; namespace?: string }) => {
      this.actions.push({ verb: "get", resource: resource.plural, ...ref });
      return this.cache(resource).get(keyOf({ metadata: ref }));
    };
    const patch = async <T extends KubeObject>(
      resource: Resource<T>,
      { name }: { name: string },
      { body }: Patch,
      { subresource }: { subresource?: string },
    ) => {
      const before = this.cache(resource).get(name);
      if (before === undefined) throw notFound(resource, name);
      this.record(resource.plural, name, subresource, before as unknown as CaseObject, body);
      if (isRefused(this.find(resource.kind, name), body)) throw new Error("testing value /metadata/finalizers failed");
      return this.patched(resource.kind, name, body) ?? before;
    };
    return { get, patch } as unknown as KubeClient;
  }

  /** Records a patch by what it makes of the object; one that changes nothing is passed over. */
  record(resource: string, name: string, subresource: string | undefined, before: CaseObject, body: unknown): void {
    const part = (object: unknown) => essence(object as CaseObject, subresource);
    const after = Array.isArray(body) ? applyJsonPatch(before, body) : mergePatch(before, body);
    if (isDeepStrictEqual(part(before), part(after))) return;
    const suffix = subresource === undefined ? {} : { subresource };
    this.actions.push({ verb: "patch", resource, name, ...suffix, result: part(after) });
  }

  /** What a patch makes of the object of this kind and name: what the server answers. */
  patched(kind: string, name: string, body: unknown): CaseObject | undefined {
    const before = this.find(kind, name);
    if (before === undefined) return undefined;
    return (Array.isArray(body) ? applyJsonPatch(before, body) : mergePatch(before, body)) as CaseObject;
  }

  /** The object of this plural and name. */
  find(kind: string, name: string): CaseObject | undefined {
    return this.#objects.find((object) => object.kind === kind && object.metadata?.name === name);
  }
}

function withFinalizers(object: CaseObject): CaseObject {
  return { ...object, metadata: { ...object.metadata, finalizers: object.metadata?.finalizers ?? [] } };
}

/** Whether the patch tests for an empty list where the server has none. */
function isRefused(object: CaseObject | undefined, body: unknown): boolean {
  if (!Array.isArray(body) || object?.metadata?.finalizers !== undefined) return false;
  return body.some(({ op, value }) => op === "test" && Array.isArray(value));
}

function notFound(resource: Resource<KubeObject>, name: string): KubeApiError {
  const message = `${resource.plural} "${name}" not found`;
  return new KubeApiError({ kind: "Status", apiVersion: "v1", status: "Failure", reason: "NotFound", code: 404, message });
}

/** Finalizers and annotations, or the status with its error texts left out. */
function essence(object: CaseObject, subresource: string | undefined): unknown {
  const plain = JSON.parse(JSON.stringify(object));
  if (subresource !== "status") {
    const { finalizers, annotations } = plain.metadata ?? {};
    return { finalizers: finalizers ?? [], annotations: annotations ?? {} };
  }
  const status = plain.status ?? {};
  for (const field of ["attachError", "detachError"]) {
    if (status[field] !== undefined && status[field] !== null) status[field] = "<error>";
    else delete status[field];
  }
  if (status.attachmentMetadata === null || Object.keys(status.attachmentMetadata ?? {}).length === 0) {
    delete status.attachmentMetadata;
  }
  return { attached: false, ...status };
}

/** A JSON merge patch (RFC 7386). */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const merged: Record<string, unknown> = { ...(typeof target === "object" ? target : {}) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else if (value !== undefined) merged[key] = mergePatch(merged[key], value);
  }
  return merged;
}

/** As much of RFC 6902 as patches of finalizers use; their tests were met by construction. */
function applyJsonPatch(target: CaseObject, steps: readonly { op: string; path: string; value?: unknown }[]): unknown {
  let finalizers = [...(target.metadata?.finalizers ?? [])];
  for (const { op, path, value } of steps) {
    const last = path.split("/").at(-1);
    if (op === "remove") finalizers.splice(Number(last), 1);
    else if (op !== "test" && last === "-") finalizers.push(value as string);
    else if (op !== "test") finalizers = [...(value as string[])];
  }
  return { ...target, metadata: { ...target.metadata, finalizers } };
}
