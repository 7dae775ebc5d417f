/** What of a cluster is where, and the story of one volume. Reads only. */
export { type ClusterStatus, clusterStatusOf, type VolumeStatus } from "./cluster-status.ts";
export { readVolumeStory, type VolumeStory } from "./volume-story.ts";
