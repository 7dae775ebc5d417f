/**
 * What a failed node operation says about the mount. Any other error is final: the call has surely
 * ended without a mount, so what was prepared for it may be cleaned up.
 * The kind is read from the outermost error only, so these are never wrapped.
 * Source: docs/behaviour/volume-plugins.md 2, table "Special errors".
 */

/** The operation could not begin, for a reason that passes; the recorded mount state stays as it is. */
export class TransientOperationError extends Error {
  override readonly name = "TransientOperationError";
}

/** The operation may have taken effect or may still be running: the volume must be unmounted before it is forgotten. */
export class UncertainProgressError extends Error {
  override readonly name = "UncertainProgressError";
}

/** The volume cannot be changed as it is used now. */
export class FailedPreconditionError extends Error {
  override readonly name = "FailedPreconditionError";
}

/** The device holds another file system than the volume says: the volume is to be corrected. */
export class FilesystemMismatchError extends Error {
  override readonly name = "FilesystemMismatchError";
}

/** Whether the error, or one that it comes from, is a {@link FilesystemMismatchError}. */
export function isFilesystemMismatch(error: unknown): boolean {
  if (error instanceof FilesystemMismatchError) return true;
  return error instanceof Error && isFilesystemMismatch(error.cause);
}

/** What the error says about the mount. */
export type NodeErrorKind = "transient" | "uncertain" | "final";

/** Classifies a failed mount operation by its outermost error. */
export function nodeErrorKind(error: unknown): NodeErrorKind {
  if (error instanceof TransientOperationError) return "transient";
  return error instanceof UncertainProgressError ? "uncertain" : "final";
}
