/** Label and field selectors of lists and watches, with the failures of the API. */
import { type KubeObject, parseFieldSelector, parseLabelSelector } from "@longshore/kube/basics";
import { badRequest } from "../api/errors.ts";

/** Says whether an object is selected. */
export type Predicate = (object: KubeObject) => boolean;

/** @throws KubeApiError 400 when `text` is no label selector */
export function labelPredicate(text: string): Predicate {
  const matcher = readable(() => parseLabelSelector(text));
  return (object) => matcher.matches(object.metadata?.labels);
}

/** A field selector: the fields that it names, and whether an object's fields match. */
export interface FieldSelector {
  readonly names: readonly string[];
  readonly matches: (fields: Readonly<Record<string, string>>) => boolean;
}

/** @throws KubeApiError 400 when `text` is no field selector */
export function fieldSelector(text: string): FieldSelector {
  const matcher = readable(() => parseFieldSelector(text));
  return {
    names: matcher.requirements.map(({ field }) => field),
    matches: (fields) => matcher.matches(fields),
  };
}

function readable<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw badRequest(`unable to parse requirement: ${(error as Error).message}`);
  }
}
