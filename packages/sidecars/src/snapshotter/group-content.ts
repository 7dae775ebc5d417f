/** What is to be done for VolumeGroupSnapshotContents. */
import {
  groupBeingCreatedAnnotation,
  groupContentFinalizer,
  snapshotResources,
  type VolumeGroupSnapshotContent,
} from "@longshore/storage";
import type { ContentWork } from "./content-reconciler.ts";
import type { ContentKind } from "./content-writes.ts";
import {
  createGroup,
  createGroupRequest,
  deleteGroup,
  type GroupCalls,
  lookAtGroup,
} from "./driver-groups.ts";
import { decideGroupContentStep, type GroupHandles, isGroupOfDriver } from "./group-content-step.ts";
import { type GroupState, groupStatusPatch } from "./group-state.ts";

const groupSnapshotContents: ContentKind<VolumeGroupSnapshotContent> = {
  resource: snapshotResources.volumeGroupSnapshotContents,
  finalizer: groupContentFinalizer,
  beingCreatedAnnotation: groupBeingCreatedAnnotation,
  noun: "group snapshot",
  reasonPrefix: "Group",
};

/** The work for the contents of groups; a group is named together with its snapshots. */
export function groupContentWork(
  calls: GroupCalls,
): ContentWork<VolumeGroupSnapshotContent, GroupHandles, GroupState> {
  return {
    kind: groupSnapshotContents,
    isOurs: (content) => isGroupOfDriver(content, calls.driver.name, calls.classOf),
    decide: decideGroupContentStep,
    isKnown: ({ status }) => status?.volumeGroupSnapshotHandle !== undefined,
    async prepareCreation(content, signal) {
      const request = await createGroupRequest(calls, content, signal);
      return () => createGroup(calls, request, signal);
    },
    look: (content, handles, signal) => lookAtGroup(calls, content, handles, signal),
    delete: (content, handles, signal) => deleteGroup(calls, content, handles, signal),
    async statusPatch({ status }, state, nowNs, signal) {
      const served = await calls.kube.servedVersion(groupSnapshotContents.resource, { signal });
      return groupStatusPatch(status, state, nowNs, served === "v1beta1");
    },
  };
}
