/** An in-tree volume cannot be used as it is: its source, class, claim, secret or device is at fault. */
export class InTreeVolumeError extends Error {
  override readonly name = "InTreeVolumeError";
}
