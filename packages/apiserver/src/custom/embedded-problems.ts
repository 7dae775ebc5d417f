/**
 * The metadata of custom resources and of the resources within them: read as that of every object, and what it does
 * not have is dropped (apiextensions-apiserver schema/objectmeta).
 */
import type { KubeObject } from "@longshore/kube";
import type { CustomSchema } from "../api/custom-schema.ts";
import { badRequest, type FieldProblem, requiredValue } from "../api/errors.ts";
import { decodeMetadata } from "../schema/decode-object.ts";
import { addProblems, memberPath, pathWithin } from "./add-problems.ts";
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
  const problems: FieldProblem[] = [];
  look(value, schema, at, problems);
  return problems;
}

function look(value: unknown, schema: CustomSchema | undefined, at: string, problems: FieldProblem[]): void {
  if (schema === undefined || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return;
    for (const [i, item] of value.entries()) {
      if (typeof item === "object") look(item, items, pathWithin(at, `[${i}]`), problems);
    }
    return;
  }
  if (at !== "" && schema["x-kubernetes-embedded-resource"] === true) {
    for (const key of ["apiVersion", "kind"]) {
      if (!(value as Json)[key]) {
        addProblems(problems, [requiredValue(pathWithin(at, `.${key}`), "must not be empty")]);
      }
    }
  }
  for (const [key, member] of Object.entries(value)) {
    look(member, memberSchema(schema, key), memberPath(at, key), problems);
  }
}
