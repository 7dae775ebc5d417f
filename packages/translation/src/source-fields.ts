/** The members of an in-tree source, as the API types them, and the check of a source against them. */

import { TranslationError } from "./translation-error.ts";

/** What the API says of one member of a source. */
export interface SourceField {
  readonly type: "text" | "whole number" | "boolean" | "object" | "list of texts";
  /** Set when a volume without it, or with an empty one, names no disk. */
  readonly required?: true;
}

/** The members of a source that translation reads. */
export interface SourceFields {
  readonly [member: string]: SourceField;
}

/** A text that names the disk, or a part of its name. */
export const requiredText: SourceField = { type: "text", required: true };
/** A text that may be absent. */
export const optionalText: SourceField = { type: "text" };
/** The members that most sources share. */
export const commonFields: SourceFields = { fsType: optionalText, readOnly: { type: "boolean" } };

/**
 * Checks `source` against the types of the API, since a manifest may contain anything (validation.go of core/v1:
 * required members; types.go: their types).
 * @param path path of the source in its object, such as `spec.cinder`
 * @throws TranslationError naming the first member that is missing or of another type
 */
export function checkSource(object: () => string, path: string, source: unknown, fields: SourceFields): void {
  if (!isObject(source)) {
    throw new TranslationError(object(), path, "is not an object", "write the members of the volume source");
  }
  for (const member in fields) {
    const field = fields[member] as SourceField;
    const value = Object.hasOwn(source, member) ? source[member] : undefined;
    if (value == null || value === "") {
      if (!field.required) continue;
      const remedy = "set it: without it the volume names no disk";
      throw new TranslationError(
        object(),
        `${path}.${member}`,
        value === "" ? "is empty" : "is missing",
        remedy,
      );
    }
    if (hasType(value, field)) continue;
    const problem = `is not a ${field.type}`;
    throw new TranslationError(object(), `${path}.${member}`, problem, `write it as a ${field.type}`);
  }
}

function hasType(value: unknown, { type, required }: SourceField): boolean {
  switch (type) {
    case "text":
      return typeof value === "string";
    case "whole number":
      return Number.isInteger(value);
    case "boolean":
      return typeof value === "boolean";
    case "object":
      return isObject(value);
    case "list of texts":
      if (!Array.isArray(value) || (required && value.length === 0)) return false;
      return value.every((item) => typeof item === "string" && (item !== "" || !required));
  }
}

function isObject(value: unknown): value is { readonly [member: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
