/** What is to be done for VolumeSnapshotContents. */
import {
  beingCreatedAnnotation,
  contentFinalizer,
  snapshotResources,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import type { ContentWork } from "./content-reconciler.ts";
import { decideContentStep, isOfDriver } from "./content-step.ts";
import type { ContentKind } from "./content-writes.ts";
import {
  canLook,
  createRequest,
  createSnapshot,
  deleteSnapshot,
  lookAtSnapshot,
  type SnapshotCalls,
} from "./driver-snapshots.ts";
import { type SnapshotState, statusPatch } from "./snapshot-state.ts";

const snapshotContents: ContentKind<VolumeSnapshotContent> = {
  resource: snapshotResources.volumeSnapshotContents,
  finalizer: contentFinalizer,
  beingCreatedAnnotation,
  noun: "snapshot",
  reasonPrefix: "",
};

/** The work for the contents of single snapshots; their handle is that of the snapshot. */
export function snapshotContentWork(
  calls: SnapshotCalls,
): ContentWork<VolumeSnapshotContent, string, SnapshotState> {
  return {
    kind: snapshotContents,
    isOurs: (content) => isOfDriver(content, calls.driver.name, calls.classOf),
    decide: (content) => decideContentStep(content, canLook(calls.driver)),
    isKnown: ({ status }) => status?.snapshotHandle !== undefined,
    async prepareCreation(content, signal) {
      const request = await createRequest(calls, content, signal);
      return () => createSnapshot(calls, request, signal);
    },
    look: (content, handle, signal) => lookAtSnapshot(calls, content, handle, signal),
    delete: (content, handle, signal) => deleteSnapshot(calls, content, handle, signal),
    statusPatch: async ({ status }, state, nowNs) => statusPatch(status, state, nowNs),
  };
}
