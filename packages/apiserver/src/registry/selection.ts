/** What a request's selectors choose. */
import type { KubeObject, Stored } from "@longshore/kube";
import type { ApiQuery } from "../api/api-request.ts";
import { badRequest } from "../api/errors.ts";
import type { Kind } from "../api/kind.ts";
import { spendTime } from "../api/work-time.ts";
import type { KindRequest } from "./registry-context.ts";
import { fieldSelector, labelPredicate } from "./selectors.ts";

/** Everything that the request's selectors choose, as of now. */
export function selectedObjects(request: KindRequest): readonly Stored[] {
  const objects = request.table.list(request.namespace);
  const selects = selection(request.of, request.query, request.name);
  return selects === undefined ? objects : objects.filter(selects);
}

/** The selectors as one predicate; undefined when all is selected. */
export function selection(
  of: Kind,
  query: ApiQuery,
  name: string | undefined,
): ((object: Stored) => boolean) | undefined {
  const tests: ((object: Stored) => boolean)[] = [];
  if (name !== undefined) tests.push((o) => o.metadata.name === name);
  if (query.labelSelector) tests.push(labelPredicate(query.labelSelector));
  if (query.fieldSelector) {
    const selector = fieldSelector(query.fieldSelector);
    for (const field of selector.names) checkField(of, field);
    tests.push((o) => selector.matches(fieldsOf(of, o)));
  }
  if (tests.length === 0) return undefined;
  return (object) => {
    spendTime(tests.length);
    return tests.every((test) => test(object));
  };
}

/** @throws KubeApiError 400 for a field that selectors of the kind may not use */
function checkField(of: Kind, field: string): void {
  if (field === "metadata.name" || field === "metadata.namespace") return;
  const own = of.fields?.({});
  if (own !== undefined && Object.hasOwn(own, field)) return;
  throw badRequest(
    own === undefined
      ? `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`
      : `field label not supported: ${field}`,
  );
}

function fieldsOf(of: Kind, object: KubeObject): Readonly<Record<string, string>> {
  const { name = "", namespace = "" } = object.metadata ?? {};
  return {
    "metadata.name": name,
    "metadata.namespace": namespace,
    ...of.fields?.(object),
  };
}
