/** Circles between folders that are there still. One that is gone must be gone from here, too. */

/** One circle that {@link folderCircles} does not report. */
export interface KnownCircle {
  /** The folder whose parts import each other: `packages/NAME/src/…`. */
  readonly folder: string;
  /** The parts, in any order: folders end with a slash. */
  readonly parts: readonly string[];
}

/** See the file's header. */
export const knownCircles: readonly KnownCircle[] = [
  { folder: "packages/sidecars/src/provisioner", parts: ["capacity/", "topology-view.ts"] },
];
