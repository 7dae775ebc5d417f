/** What is to be done for VolumeGroupSnapshotContents. */
import {
  groupBeingCreatedAnnotation,
  groupContentFinalizer,
  snapshotResources,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
} from "@longshore/storage";
import type { ContentCalls, ContentKind, ContentRules } from "./content-rules.ts";
import { decideGroupContentStep, type GroupHandles, isGroupOfDriver } from "./decide-group-content-step.ts";
import {
  createGroup,
  createGroupRequest,
  deleteGroup,
  type GroupNaming,
  type GroupRequest,
  groupLookSecretOf,
  groupSecretOf,
  lookAtGroup,
} from "./driver-groups.ts";
import type { DriverCalls } from "./driver-snapshots.ts";
import { type GroupState, groupStatusPatch } from "./group-state.ts";

const groupSnapshotContents: ContentKind<VolumeGroupSnapshotContent> = {
  resource: snapshotResources.volumeGroupSnapshotContents,
  finalizer: groupContentFinalizer,
  beingCreatedAnnotation: groupBeingCreatedAnnotation,
  noun: "group snapshot",
  reasonPrefix: "Group",
};

/** Contents of groups; a group is named together with its snapshots. */
export interface GroupTypes {
  readonly content: VolumeGroupSnapshotContent;
  readonly class: VolumeGroupSnapshotClass;
  readonly handle: GroupHandles;
  readonly request: GroupRequest;
  readonly state: GroupState;
}

/** The rules for them. */
export function groupRules(naming: GroupNaming): ContentRules<GroupTypes> {
  return {
    kind: groupSnapshotContents,
    step: decideGroupContentStep,
    isKnown: ({ status }) => status?.volumeGroupSnapshotHandle !== undefined,
    creationRequest: (content, contentClass) => createGroupRequest(naming, content, contentClass),
    secretOf: groupSecretOf,
    lookSecretOf: groupLookSecretOf,
    assumedState: () => undefined,
    readsServedVersion: true,
    statusPatch: ({ status }, state, nowNs, servedVersion) =>
      groupStatusPatch(status, state, nowNs, servedVersion === "v1beta1"),
  };
}

/** The calls about them. @param classOf the class of this name, by the cache */
export function groupCalls(
  calls: DriverCalls,
  classOf: (name: string) => VolumeGroupSnapshotClass | undefined,
): ContentCalls<GroupTypes> {
  return {
    isOurs: (content) => isGroupOfDriver(content, calls.driver.name, classOf),
    classOf: ({ spec }) => classOf(spec.volumeGroupSnapshotClassName ?? ""),
    create: (request, secrets, signal) => createGroup(calls, request, secrets, signal),
    look: (handle, secrets, signal) => lookAtGroup(calls, handle, secrets, signal),
    delete: (handle, secrets, signal) => deleteGroup(calls, handle, secrets, signal),
  };
}
