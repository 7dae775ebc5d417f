/** Why an object cannot be translated, in the words of a finding. */
import { TranslationError } from "@longshore/translation";

/** Field, evidence and remedy of a translation that fails. */
export interface TranslationFault {
  readonly field?: string;
  readonly evidence: string;
  readonly remedy: string;
}

/** Runs the translation; undefined when it succeeds. */
export function translationFault(translate: () => unknown): TranslationFault | undefined {
  try {
    translate();
    return undefined;
  } catch (error) {
    if (error instanceof TranslationError) {
      const { field, problem, remedy } = error;
      return { ...(field === "" ? {} : { field }), evidence: problem, remedy };
    }
    // Members of an object that comes from a file may be of any type.
    if (!(error instanceof TypeError)) throw error;
    const evidence = `a field is missing or not of the type that the API gives it (${error.message})`;
    return { evidence, remedy: "correct the object" };
  }
}
