/**
 * What the suite has made and not removed again. It watches the calls, so that nothing is forgotten, also what
 * was made by a call that should have been refused, and what a call without an answer may have made.
 *
 * Invariant: everything in the ledger can be removed by calling the driver as a CO would, in the order of the
 * life of a volume backwards; see `undo-all.ts`.
 */
import type {
  ControllerPublishVolumeRequest,
  ControllerUnpublishVolumeRequest,
  CreateSnapshotRequest,
  CreateSnapshotResponse,
  CreateVolumeGroupSnapshotRequest,
  CreateVolumeGroupSnapshotResponse,
  CreateVolumeRequest,
  CreateVolumeResponse,
  DeleteSnapshotRequest,
  DeleteVolumeGroupSnapshotRequest,
  DeleteVolumeRequest,
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  NodeUnpublishVolumeRequest,
  NodeUnstageVolumeRequest,
} from "@longshore/csi";
import type { CallOutcome, CallWatcher } from "./conformance-clients.ts";

/** One thing that was made. */
export type Made =
  | { readonly kind: "nodePublish"; readonly volumeId: string; readonly targetPath: string }
  | { readonly kind: "nodeStage"; readonly volumeId: string; readonly stagingPath: string }
  | { readonly kind: "controllerPublish"; readonly volumeId: string; readonly nodeId: string }
  | {
      readonly kind: "groupSnapshot";
      readonly groupSnapshotId: string;
      readonly snapshotIds: readonly string[];
    }
  | { readonly kind: "snapshot"; readonly snapshotId: string }
  | { readonly kind: "volume"; readonly volumeId: string }
  /** A create without an answer: only repeating it returns the id. */
  | { readonly kind: "volumeOfRequest"; readonly request: CreateVolumeRequest }
  | { readonly kind: "snapshotOfRequest"; readonly request: CreateSnapshotRequest }
  | { readonly kind: "groupOfRequest"; readonly request: CreateVolumeGroupSnapshotRequest }
  | { readonly kind: "directory"; readonly path: string };

/** The order in which things are removed; within a kind the newest goes first. */
export const removalOrder = [
  "nodePublish",
  "nodeStage",
  "controllerPublish",
  "groupOfRequest",
  "groupSnapshot",
  // Before the volumes: a driver may refuse to delete a volume that has snapshots (CSI, DeleteVolume).
  "snapshotOfRequest",
  "snapshot",
  "volumeOfRequest",
  "volume",
  "directory",
] as const satisfies readonly Made["kind"][];

/** The things that are there. */
export class Ledger implements CallWatcher {
  readonly #made = new Map<string, Made>();

  get size(): number {
    return this.#made.size;
  }

  /** What is there, in the order of removal. */
  inOrder(): readonly Made[] {
    const newestFirst = [...this.#made.values()].reverse();
    return removalOrder.flatMap((kind) => newestFirst.filter((made) => made.kind === kind));
  }

  /** Whether a volume may be staged or published at the path or below it. */
  mayBeMountedAt(path: string): boolean {
    const isThere = (mounted: string) => mounted === path || mounted.startsWith(`${path}/`);
    return [...this.#made.values()].some(
      (made) =>
        (made.kind === "nodePublish" && isThere(made.targetPath)) ||
        (made.kind === "nodeStage" && isThere(made.stagingPath)),
    );
  }

  add(made: Made): void {
    const key = keyOf(made);
    // A Map keeps the place of a key that is set again: what was made again is to be the newest.
    this.#made.delete(key);
    this.#made.set(key, made);
  }

  remove(made: Made): void {
    this.#made.delete(keyOf(made));
  }

  onEnd(outcome: CallOutcome): void {
    if (outcome.error === undefined && outcome.method.name === "ControllerUnpublishVolume") {
      this.#unpublished(outcome.request as ControllerUnpublishVolumeRequest);
    }
    for (const { made, isThere } of effectsOf(outcome)) {
      if (isThere) this.add(made);
      else this.remove(made);
    }
  }

  /** Without a node the volume is unpublished from all. */
  #unpublished({ volumeId, nodeId }: ControllerUnpublishVolumeRequest): void {
    for (const [key, made] of this.#made) {
      if (made.kind !== "controllerPublish" || made.volumeId !== volumeId) continue;
      if (nodeId === "" || made.nodeId === nodeId) this.#made.delete(key);
    }
  }
}

/** How a thing is named to the reader of a report. */
export function nameOfMade(made: Made): string {
  switch (made.kind) {
    case "nodePublish":
      return `volume ${made.volumeId} at ${made.targetPath}`;
    case "nodeStage":
      return `volume ${made.volumeId} staged at ${made.stagingPath}`;
    case "controllerPublish":
      return `volume ${made.volumeId} published to node ${made.nodeId}`;
    case "groupSnapshot":
      return `group snapshot ${made.groupSnapshotId}`;
    case "snapshot":
      return `snapshot ${made.snapshotId}`;
    case "volume":
      return `volume ${made.volumeId}`;
    case "volumeOfRequest":
      return `the volume named ${made.request.name}, if it was made`;
    case "snapshotOfRequest":
      return `the snapshot named ${made.request.name}, if it was made`;
    case "groupOfRequest":
      return `the group snapshot named ${made.request.name}, if it was made`;
    case "directory":
      return `directory ${made.path}`;
  }
}

function keyOf(made: Made): string {
  if (made.kind === "directory") return made.path;
  if (made.kind === "groupSnapshot") return `group snapshot ${made.groupSnapshotId}`;
  return nameOfMade(made);
}

interface Effect {
  readonly made: Made;
  readonly isThere: boolean;
}

/**
 * What a call has made or removed. A refusal has made nothing; a call without an answer may have made
 * something, and has removed nothing for sure.
 */
function effectsOf({ method, request: anyRequest, response: anyResponse, error }: CallOutcome): Effect[] {
  const isDone = error === undefined;
  if (!isDone && error.answered && !mayGoOn.has(error.code)) return [];
  switch (method.name) {
    case "CreateVolume": {
      const request = anyRequest as CreateVolumeRequest;
      const ofRequest = { kind: "volumeOfRequest", request } as const;
      // Without a name the call cannot be repeated to learn the id.
      if (!isDone) return request.name === "" ? [] : [{ made: ofRequest, isThere: true }];
      const volumeId = (anyResponse as CreateVolumeResponse).volume?.volumeId ?? "";
      return [{ made: ofRequest, isThere: false }, ...there(volumeId, { kind: "volume", volumeId })];
    }
    case "CreateSnapshot": {
      const request = anyRequest as CreateSnapshotRequest;
      const ofRequest = { kind: "snapshotOfRequest", request } as const;
      if (!isDone) return request.name === "" ? [] : [{ made: ofRequest, isThere: true }];
      const snapshotId = (anyResponse as CreateSnapshotResponse).snapshot?.snapshotId ?? "";
      return [{ made: ofRequest, isThere: false }, ...there(snapshotId, { kind: "snapshot", snapshotId })];
    }
    case "CreateVolumeGroupSnapshot": {
      const request = anyRequest as CreateVolumeGroupSnapshotRequest;
      const ofRequest = { kind: "groupOfRequest", request } as const;
      if (!isDone) return request.name === "" ? [] : [{ made: ofRequest, isThere: true }];
      const group = (anyResponse as CreateVolumeGroupSnapshotResponse).groupSnapshot;
      const groupSnapshotId = group?.groupSnapshotId ?? "";
      const snapshotIds = group?.snapshots.map((snapshot) => snapshot.snapshotId) ?? [];
      return [
        { made: ofRequest, isThere: false },
        ...there(groupSnapshotId, { kind: "groupSnapshot", groupSnapshotId, snapshotIds }),
      ];
    }
    case "ControllerPublishVolume": {
      const { volumeId, nodeId } = anyRequest as ControllerPublishVolumeRequest;
      return there(volumeId, { kind: "controllerPublish", volumeId, nodeId });
    }
    case "NodeStageVolume": {
      const { volumeId, stagingTargetPath } = anyRequest as NodeStageVolumeRequest;
      return there(volumeId && stagingTargetPath, {
        kind: "nodeStage",
        volumeId,
        stagingPath: stagingTargetPath,
      });
    }
    case "NodePublishVolume": {
      const { volumeId, targetPath } = anyRequest as NodePublishVolumeRequest;
      return there(volumeId && targetPath, { kind: "nodePublish", volumeId, targetPath });
    }
    default:
      return isDone ? removalsOf(method.name, anyRequest) : [];
  }
}

/** Codes after which what was requested may still come about. */
const mayGoOn: ReadonlySet<string> = new Set(["ABORTED", "CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE"]);

/** What has no id cannot be removed. */
function there(id: string, made: Made): Effect[] {
  return id === "" ? [] : [{ made, isThere: true }];
}

function removalsOf(rpc: string, anyRequest: unknown): Effect[] {
  const gone = (made: Made): Effect[] => [{ made, isThere: false }];
  switch (rpc) {
    case "DeleteVolume":
      return gone({ kind: "volume", volumeId: (anyRequest as DeleteVolumeRequest).volumeId });
    case "DeleteSnapshot":
      return gone({ kind: "snapshot", snapshotId: (anyRequest as DeleteSnapshotRequest).snapshotId });
    case "DeleteVolumeGroupSnapshot": {
      const { groupSnapshotId } = anyRequest as DeleteVolumeGroupSnapshotRequest;
      return gone({ kind: "groupSnapshot", groupSnapshotId, snapshotIds: [] });
    }
    case "NodeUnstageVolume": {
      const { volumeId, stagingTargetPath } = anyRequest as NodeUnstageVolumeRequest;
      return gone({ kind: "nodeStage", volumeId, stagingPath: stagingTargetPath });
    }
    case "NodeUnpublishVolume": {
      const { volumeId, targetPath } = anyRequest as NodeUnpublishVolumeRequest;
      return gone({ kind: "nodePublish", volumeId, targetPath });
    }
    default:
      return [];
  }
}
