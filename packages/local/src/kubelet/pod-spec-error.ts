/** Errors in what a pod asks for. */

/** The pod asks for something that this node cannot provide; the message names the field. */
export class PodSpecError extends Error {
  override readonly name = "PodSpecError";
}
