/** Faults of the snapshot RPCs and of the group controller. */
import {
  CreateSnapshotResponseSchema,
  CreateVolumeGroupSnapshotResponseSchema,
  CsiStatusError,
  create,
  GetSnapshotResponseSchema,
  GetVolumeGroupSnapshotResponseSchema,
  GroupControllerGetCapabilitiesResponseSchema,
  GroupControllerServiceCapability_RPC_Type as GroupRpc,
  ListSnapshotsResponseSchema,
  type Snapshot,
  type VolumeGroupSnapshot,
} from "@longshore/csi";
import { type AnswerOf, all, answersOn, answersWhen, around, asks, changes, type Fault } from "./fault.ts";
import type { FaultName } from "./fault-descriptions.ts";
import { repeatsEntries } from "./page-faults.ts";

const service = "controller";
const groups = "groupController";
const atEpoch = { seconds: 1n, nanos: 0 };

/** A snapshot that is none. */
const made = (sourceVolumeId: string) => ({
  snapshot: { snapshotId: "snap-0", sourceVolumeId, creationTime: atEpoch, readyToUse: true },
});
const madeGroup = { groupSnapshot: { groupSnapshotId: "group-0", creationTime: atEpoch, readyToUse: true } };

/** Changes every snapshot that is answered. */
function showsSnapshots(change: (snapshot: Snapshot) => Snapshot): Fault {
  return all(
    changes(service, "createSnapshot", (answer) => {
      const { snapshot } = create(CreateSnapshotResponseSchema, answer);
      return snapshot === undefined ? answer : { snapshot: change(snapshot) };
    }),
    changes(service, "getSnapshot", (answer) => {
      const { snapshot } = create(GetSnapshotResponseSchema, answer);
      return snapshot === undefined ? answer : { snapshot: change(snapshot) };
    }),
    changes(service, "listSnapshots", (answer) => {
      const { entries, nextToken } = create(ListSnapshotsResponseSchema, answer);
      const shown = entries.map(({ snapshot }) =>
        snapshot === undefined ? {} : { snapshot: change(snapshot) },
      );
      return { entries: shown, nextToken };
    }),
    showsGroups((group) => ({ ...group, snapshots: group.snapshots.map(change) })),
  );
}

/** Changes every group that is answered. */
function showsGroups(change: (group: VolumeGroupSnapshot) => VolumeGroupSnapshot): Fault {
  return all(
    changes(groups, "createVolumeGroupSnapshot", (answer) => {
      const { groupSnapshot } = create(CreateVolumeGroupSnapshotResponseSchema, answer);
      return groupSnapshot === undefined ? answer : { groupSnapshot: change(groupSnapshot) };
    }),
    changes(groups, "getVolumeGroupSnapshot", (answer) => {
      const { groupSnapshot } = create(GetVolumeGroupSnapshotResponseSchema, answer);
      return groupSnapshot === undefined ? answer : { groupSnapshot: change(groupSnapshot) };
    }),
  );
}

/** Fails with NOT_FOUND where the thing is not there. */
const isMissing = (error: unknown) => error instanceof CsiStatusError && error.code === "NOT_FOUND";
const isNotMissing = (error: unknown) => {
  if (isMissing(error)) return false;
  throw error;
};
const gone = (what: string) => new CsiStatusError("NOT_FOUND", `${what} does not exist`);

function again(name: string, times: number): string {
  return `${times} ${name.slice(0, 60)}`;
}

/** By name. */
export const snapshotFaults = {
  "snapshot-without-name-accepted": answersWhen(
    service,
    "createSnapshot",
    ({ name, sourceVolumeId }) => name === "" && sourceVolumeId !== "",
    ({ sourceVolumeId }) => made(sourceVolumeId),
  ),
  "snapshot-without-source-accepted": answersWhen(
    service,
    "createSnapshot",
    ({ sourceVolumeId }) => sourceVolumeId === "",
    () => made("vol-0"),
  ),
  "snapshot-not-idempotent": around(service, "createSnapshot", () => {
    const times = new Map<string, number>();
    return async ({ request, next }): Promise<AnswerOf<"controller", "createSnapshot">> => {
      const answer = await next();
      const before = times.get(request.name) ?? 0;
      times.set(request.name, before + 1);
      return before === 0 ? answer : next({ ...request, name: again(request.name, before) });
    };
  }),
  "snapshot-name-of-other-source-accepted": around(service, "createSnapshot", () => {
    const known = new Map<string, AnswerOf<"controller", "createSnapshot">>();
    return async ({ request, next }): Promise<AnswerOf<"controller", "createSnapshot">> => {
      try {
        const answer = await next();
        known.set(request.name, answer);
        return answer;
      } catch (error) {
        const before = known.get(request.name);
        const isOther = error instanceof CsiStatusError && error.code === "ALREADY_EXISTS";
        if (!isOther || before === undefined) throw error;
        return before;
      }
    };
  }),
  "snapshot-unknown-source-accepted": answersOn(service, "createSnapshot", "NOT_FOUND", ({ request }) =>
    made(request.sourceVolumeId),
  ),
  "snapshot-long-name-refused": around(service, "createSnapshot", () => async ({ request, next }) => {
    if (Buffer.byteLength(request.name) >= 128) {
      throw new CsiStatusError("INVALID_ARGUMENT", "the driver does not like this name");
    }
    return next();
  }),
  "snapshot-without-creation-time": showsSnapshots(({ creationTime: _time, ...rest }) => rest),
  "snapshot-with-other-source-id": showsSnapshots((snapshot) => ({ ...snapshot, sourceVolumeId: "vol-0" })),
  "snapshot-never-ready": all(
    showsSnapshots((snapshot) => ({ ...snapshot, readyToUse: false })),
    showsGroups((group) => ({ ...group, readyToUse: false })),
  ),
  "delete-snapshot-without-id-accepted": answersWhen(
    service,
    "deleteSnapshot",
    ({ snapshotId }) => snapshotId === "",
    () => ({}),
  ),
  "delete-missing-snapshot-not-found": around(
    service,
    "deleteSnapshot",
    () =>
      async ({ request, next, services, signal }) => {
        const { snapshotId, secrets } = request;
        if (snapshotId !== "") {
          await services.controller?.getSnapshot?.(
            { $typeName: "csi.v1.GetSnapshotRequest", snapshotId, secrets },
            signal,
          );
        }
        return next();
      },
  ),
  "delete-keeps-snapshot": answersWhen(
    service,
    "deleteSnapshot",
    ({ snapshotId }) => snapshotId !== "",
    () => ({}),
  ),
  "delete-group-member-accepted": answersOn(
    service,
    "deleteSnapshot",
    "INVALID_ARGUMENT",
    () => ({}),
    (_error, { snapshotId }) => snapshotId !== "",
  ),
  "list-snapshots-ignores-id": asks(service, "listSnapshots", (request) => ({ ...request, snapshotId: "" })),
  "list-snapshots-ignores-source": asks(service, "listSnapshots", (request) => ({
    ...request,
    sourceVolumeId: "",
  })),
  "list-snapshots-missing-id-not-found": around(service, "listSnapshots", () => async ({ request, next }) => {
    const answer = await next();
    const { entries } = create(ListSnapshotsResponseSchema, answer);
    if (request.snapshotId !== "" && entries.length === 0) throw gone(`snapshot ${request.snapshotId}`);
    return answer;
  }),
  "list-snapshots-repeats-entries": repeatsEntries("listSnapshots"),
  "list-snapshots-token-garbage-accepted": answersOn(
    service,
    "listSnapshots",
    "ABORTED",
    ({ request, next }) => next({ ...request, startingToken: "" }),
  ),
  "list-snapshots-ignores-max-entries": asks(service, "listSnapshots", (request) =>
    request.maxEntries > 0 ? { ...request, maxEntries: 0 } : request,
  ),
  "get-snapshot-without-id-accepted": answersWhen(
    service,
    "getSnapshot",
    ({ snapshotId }) => snapshotId === "",
    () => made("vol-0"),
  ),
  "get-snapshot-missing-accepted": answersOn(service, "getSnapshot", "NOT_FOUND", ({ request }) => ({
    snapshot: { ...made("vol-0").snapshot, snapshotId: request.snapshotId },
  })),

  "group-capability-unknown": changes(groups, "groupControllerGetCapabilities", (answer) => {
    const { capabilities } = create(GroupControllerGetCapabilitiesResponseSchema, answer);
    const unknown = { type: { case: "rpc" as const, value: { type: GroupRpc.UNKNOWN } } };
    return { capabilities: [...capabilities, unknown] };
  }),
  "group-without-name-accepted": answersWhen(
    groups,
    "createVolumeGroupSnapshot",
    ({ name, sourceVolumeIds }) => name === "" && sourceVolumeIds.length > 0,
    () => madeGroup,
  ),
  "group-without-sources-accepted": answersWhen(
    groups,
    "createVolumeGroupSnapshot",
    ({ name, sourceVolumeIds }) => name !== "" && sourceVolumeIds.length === 0,
    () => madeGroup,
  ),
  "group-not-idempotent": around(groups, "createVolumeGroupSnapshot", () => {
    const times = new Map<string, number>();
    return async ({ request, next }): Promise<AnswerOf<"groupController", "createVolumeGroupSnapshot">> => {
      const answer = await next();
      const before = times.get(request.name) ?? 0;
      times.set(request.name, before + 1);
      return before === 0 ? answer : next({ ...request, name: again(request.name, before) });
    };
  }),
  "group-other-sources-accepted": around(groups, "createVolumeGroupSnapshot", () => {
    const known = new Map<string, AnswerOf<"groupController", "createVolumeGroupSnapshot">>();
    return async ({ request, next }): Promise<AnswerOf<"groupController", "createVolumeGroupSnapshot">> => {
      try {
        const answer = await next();
        known.set(request.name, answer);
        return answer;
      } catch (error) {
        const before = known.get(request.name);
        const isOther = error instanceof CsiStatusError && error.code === "ALREADY_EXISTS";
        if (!isOther || before === undefined) throw error;
        return before;
      }
    };
  }),
  "group-members-without-group-id": showsGroups((group) => ({
    ...group,
    snapshots: group.snapshots.map((snapshot) => ({ ...snapshot, groupSnapshotId: "" })),
  })),
  "group-loses-member": showsGroups((group) => ({ ...group, snapshots: group.snapshots.slice(1) })),
  "group-ready-before-members": showsGroups((group) => ({
    ...group,
    readyToUse: true,
    snapshots: group.snapshots.map((snapshot, index) =>
      index === 0 ? { ...snapshot, readyToUse: false } : snapshot,
    ),
  })),
  "group-delete-without-id-accepted": answersWhen(
    groups,
    "deleteVolumeGroupSnapshot",
    ({ groupSnapshotId }) => groupSnapshotId === "",
    () => ({}),
  ),
  "group-delete-missing-not-found": around(
    groups,
    "deleteVolumeGroupSnapshot",
    () =>
      async ({ request, next, services, signal }) => {
        const { groupSnapshotId, secrets } = request;
        const get = services.groupController?.getVolumeGroupSnapshot;
        if (groupSnapshotId !== "" && get !== undefined) {
          const question = { $typeName: "csi.v1.GetVolumeGroupSnapshotRequest" as const, groupSnapshotId };
          const isThere = await get({ ...question, snapshotIds: [], secrets }, signal).then(
            () => true,
            isNotMissing,
          );
          if (!isThere) throw gone(`group snapshot ${groupSnapshotId}`);
        }
        return next();
      },
  ),
  "group-delete-mismatch-accepted": asks(groups, "deleteVolumeGroupSnapshot", (request) => ({
    ...request,
    snapshotIds: [],
  })),
  "group-get-without-id-accepted": answersWhen(
    groups,
    "getVolumeGroupSnapshot",
    ({ groupSnapshotId }) => groupSnapshotId === "",
    () => madeGroup,
  ),
  "group-get-missing-accepted": answersOn(groups, "getVolumeGroupSnapshot", "NOT_FOUND", () => madeGroup),
  "group-get-mismatch-accepted": asks(groups, "getVolumeGroupSnapshot", (request) => ({
    ...request,
    snapshotIds: [],
  })),
} as const satisfies Partial<Record<FaultName, Fault>>;
