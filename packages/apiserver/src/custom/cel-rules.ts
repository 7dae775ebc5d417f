import type { FieldProblem } from "../api/errors.ts";
import type { CustomSchema } from "./custom-schema.ts";

export function ruleProblems(_schema: CustomSchema, _at: string): FieldProblem[] {
  return [];
}

export function ruleViolations(
  _object: unknown,
  _old: unknown,
  _schema: CustomSchema,
  _options: { readonly ratchets: boolean },
): FieldProblem[] {
  return [];
}
