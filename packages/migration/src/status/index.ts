/** What of a cluster is where, and the story of one volume. Reads only. */
export { type ClusterStatus, clusterStatusOf, type VolumeStatus } from "./cluster-status.ts";
export { type CrossingsRead, readCrossings } from "./read-crossings.ts";
export { readVolumeStory, type VolumeStory } from "./volume-story.ts";
