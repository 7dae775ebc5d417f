/**
 * The one error that translation throws: an object that cannot be translated, with the field at
 * fault and what to do about it.
 */

/** Names an object in an error: its kind and, where there is one, its name. */
export function objectLabel(
  kind: string,
  metadata: { readonly name?: string | undefined } | undefined,
): string {
  return `${kind} ${JSON.stringify(metadata?.name ?? "")}`;
}

/** Thrown when an object cannot be translated. Nothing was changed: translation never mutates. */
export class TranslationError extends Error {
  override readonly name = "TranslationError";
  /** The object, such as `PersistentVolume "pv-1"`. */
  readonly object: string;
  /** Path of the field at fault inside that object, such as `spec.csi.volumeHandle`; "" for the object itself. */
  readonly field: string;
  /** What is wrong with it. */
  readonly problem: string;
  /** What would make it translatable. */
  readonly remedy: string;

  constructor(object: string, field: string, problem: string, remedy: string) {
    super(`${object}: ${field === "" ? "" : `${field}: `}${problem}; ${remedy}`);
    this.object = object;
    this.field = field;
    this.problem = problem;
    this.remedy = remedy;
  }
}

/** A fault found below the level that knows which object is being translated. */
export interface Fault {
  readonly problem: string;
  readonly remedy: string;
}

/** True for a fault; on success a parser returns a text or a number. */
export function isFault(value: string | number | Fault): value is Fault {
  return typeof value === "object";
}
