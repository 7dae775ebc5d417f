/** Errors of plugins that controllers treat in a way of their own. Source: docs/behaviour/volume-plugins.md 2. */

/** Attach found the volume attached to another node. */
export class DanglingAttachError extends Error {
  override readonly name = "DanglingAttachError";
  /** The node that has it. */
  readonly currentNode: string;
  /** The device there. */
  readonly devicePath: string;
  constructor(message: string, currentNode: string, devicePath: string, options?: ErrorOptions) {
    super(message, options);
    this.currentNode = currentNode;
    this.devicePath = devicePath;
  }
}

/** The volume cannot be deleted because it is still in use; to be tried again, not a failure. */
export class DeletedVolumeInUseError extends Error {
  override readonly name = "DeletedVolumeInUseError";
}
