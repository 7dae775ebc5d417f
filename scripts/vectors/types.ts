/**
 * What the vector runner knows of a file of recorded answers, and what a group of vectors brings along: a
 * table from operation to the function that answers it.
 */

/** One line of a vector file. */
export interface VectorCase {
  readonly id: string;
  /** Which build of the reference recorded it, where there are several. */
  readonly set?: string;
  readonly op: string;
  readonly input: unknown;
  /** The recorded answer; absent when the reference refused. */
  readonly output?: unknown;
  /** The recorded refusal. Its text is for information only. */
  readonly error?: string;
  /** Several right answers, where the reference chooses at random. */
  readonly anyOf?: readonly { readonly output?: unknown; readonly error?: string }[];
}

/** Answers one case; throwing means refusing. */
export type VectorHandler = (input: never, vector: VectorCase) => unknown;

/** A group of operations. Groups are distinguished by their operations, which are unique over all groups. */
export interface VectorGroup {
  readonly name: string;
  readonly handlers: { readonly [op: string]: VectorHandler };
}
