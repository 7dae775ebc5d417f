/** What is to be done for VolumeSnapshotContents. */
import {
  beingCreatedAnnotation,
  contentFinalizer,
  snapshotResources,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import type { ContentCalls, ContentKind, ContentRules } from "./content-rules.ts";
import { decideContentStep, isOfDriver } from "./content-step.ts";
import {
  createRequest,
  createSnapshot,
  type DriverCalls,
  deleteSnapshot,
  lookAtSnapshot,
  lookSecretOf,
  readySnapshot,
  type SnapshotNaming,
  type SnapshotRequest,
  secretOf,
} from "./driver-snapshots.ts";
import { type SnapshotState, statusPatch } from "./snapshot-state.ts";

const snapshotContents: ContentKind<VolumeSnapshotContent> = {
  resource: snapshotResources.volumeSnapshotContents,
  finalizer: contentFinalizer,
  beingCreatedAnnotation,
  noun: "snapshot",
  reasonPrefix: "",
};

/** Contents of single snapshots; their handle is that of the snapshot. */
export interface SingleTypes {
  readonly content: VolumeSnapshotContent;
  readonly class: VolumeSnapshotClass;
  readonly handle: string;
  readonly request: SnapshotRequest;
  readonly state: SnapshotState;
}

/** The rules for them. @param mayLook the driver can be asked how a snapshot is */
export function snapshotRules(naming: SnapshotNaming, mayLook: boolean): ContentRules<SingleTypes> {
  return {
    kind: snapshotContents,
    step: (content) => decideContentStep(content, mayLook),
    isKnown: ({ status }) => status?.snapshotHandle !== undefined,
    creationRequest: (content, contentClass) => createRequest(naming, content, contentClass),
    secretOf,
    lookSecretOf,
    assumedState: (handle) => (mayLook ? undefined : readySnapshot(handle)),
    readsServedVersion: false,
    statusPatch: ({ status }, state, nowNs) => statusPatch(status, state, nowNs),
  };
}

/** The calls about them. @param classOf the class of this name, by the cache */
export function snapshotCalls(
  calls: DriverCalls,
  classOf: (name: string) => VolumeSnapshotClass | undefined,
): ContentCalls<SingleTypes> {
  return {
    isOurs: (content) => isOfDriver(content, calls.driver.name, classOf),
    classOf: ({ spec }) => classOf(spec.volumeSnapshotClassName ?? ""),
    create: (request, secrets, signal) => createSnapshot(calls, request, secrets, signal),
    look: (handle, secrets, signal) => lookAtSnapshot(calls, handle, secrets, signal),
    delete: (handle, secrets, signal) => deleteSnapshot(calls, handle, secrets, signal),
  };
}
