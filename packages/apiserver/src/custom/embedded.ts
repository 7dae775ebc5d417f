/**
 * The metadata of custom resources and of the resources within them: read as that of every object, and what it does
 * not have is dropped (apiextensions-apiserver schema/objectmeta).
 */
import type { KubeObject } from "@longshore/kube";
import { badRequest, type FieldProblem, requiredValue } from "../api/errors.ts";
import { decodeMetadata } from "../schema/decode.ts";
import type { CustomSchema } from "./custom-schema.ts";
import { mapList, mapObject, own } from "./prune.ts";

type Json = Readonly<Record<string, unknown>>;

/** The object with its own metadata, and that of embedded resources, as the API has it. @throws KubeApiError 400 */
export function withReadMetadata(object: KubeObject, schema: CustomSchema | undefined): KubeObject {
  const { metadata } = object;
  const read = metadata === undefined ? object : { ...object, metadata: metadataOf(metadata, "metadata") };
  return embedded(read, schema, "", true) as KubeObject;
}

function metadataOf(value: unknown, at: string): NonNullable<KubeObject["metadata"]> {
  const { metadata, problem } = decodeMetadata(value, at);
  if (problem !== undefined) throw badRequest(problem);
  return metadata as NonNullable<KubeObject["metadata"]>;
}

function embedded(value: unknown, schema: CustomSchema | undefined, at: string, isRoot: boolean): unknown {
  if (schema === undefined || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value))
    return mapList(value, (item, i) => embedded(item, schema.items, `${at}[${i}]`, false));
  const isResource = !isRoot && schema["x-kubernetes-embedded-resource"] === true;
  return mapObject(value as Json, (key, member) => {
    const path = at === "" ? key : `${at}.${key}`;
    if (isResource && key === "metadata" && member !== null) return metadataOf(member, path);
    return embedded(member, memberSchema(schema, key), path, false);
  });
}

function memberSchema(schema: CustomSchema, key: string): CustomSchema | undefined {
  const { properties, additionalProperties } = schema;
  return (
    own(properties, key) ?? (typeof additionalProperties === "object" ? additionalProperties : undefined)
  );
}

/** What embedded resources lack: a kind and a version. */
export function embeddedProblems(value: unknown, schema: CustomSchema | undefined, at = ""): FieldProblem[] {
  if (schema === undefined || typeof value !== "object" || value === null) return [];
  if (Array.isArray(value))
    return value.flatMap((item, i) => embeddedProblems(item, schema.items, `${at}[${i}]`));
  const problems: FieldProblem[] = [];
  if (at !== "" && schema["x-kubernetes-embedded-resource"] === true) {
    for (const key of ["apiVersion", "kind"]) {
      if (!(value as Json)[key]) problems.push(requiredValue(`${at}.${key}`, "must not be empty"));
    }
  }
  for (const [key, member] of Object.entries(value)) {
    problems.push(...embeddedProblems(member, memberSchema(schema, key), at === "" ? key : `${at}.${key}`));
  }
  return problems;
}
