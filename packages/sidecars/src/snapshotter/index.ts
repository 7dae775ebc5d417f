export { type SnapshotterOptions, serveSnapshotContents, startSnapshotter } from "./snapshotter.ts";
