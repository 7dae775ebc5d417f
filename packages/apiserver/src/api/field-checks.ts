/** What a request asks for members that its kind does not have (`fieldValidation`). */

/** What is done about what a strict decoder objects to. */
export const fieldValidations = ["Ignore", "Warn", "Strict"] as const;

/** One of {@link fieldValidations}. */
export type FieldValidation = (typeof fieldValidations)[number];

/** How a request's fields are to be looked at, and what has been found in the text of its body. */
export interface FieldChecks {
  readonly validation: FieldValidation;
  /** Problems of the text itself: members that are there twice. */
  readonly inText: readonly string[];
  /** Sends the client a warning in addition to the answer. */
  readonly warn: (text: string) => void;
}
