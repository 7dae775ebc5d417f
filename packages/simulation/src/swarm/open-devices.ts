/** Which devices programs have open, for the checks: to a device without a file system no mount points. */
import type { Mount } from "@longshore/runtime";

/** Of every node of one world. */
export class OpenDevices {
  readonly #open = new Map<string, Set<Mount>>();

  /** A program opens the device that it has at the path; returns the function that closes it. */
  open(node: string, device: string, path: string): () => void {
    const ofNode = this.#open.get(node) ?? new Set();
    this.#open.set(node, ofNode);
    const opened: Mount = { source: device, target: path, fsType: "", readOnly: false };
    ofNode.add(opened);
    return () => ofNode.delete(opened);
  }

  /** As if they were mounts: a program that has a device open must not lose it. */
  of(node: string): readonly Mount[] {
    return [...(this.#open.get(node) ?? [])];
  }
}
