/** Why an object cannot be converted, as one sentence. */
import { translationFault } from "../../assess/translation-fault.ts";

/** Field, problem and remedy. @throws what is no fault of the object */
export function failureOf(error: unknown): string {
  const fault = translationFault(() => {
    throw error;
  });
  if (fault === undefined) return "";
  const field = fault.field === undefined ? "" : `${fault.field}: `;
  return `${field}${fault.evidence}; ${fault.remedy}`;
}
