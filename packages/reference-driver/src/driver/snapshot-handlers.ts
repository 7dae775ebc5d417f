/** The snapshot RPCs of the controller, and the group controller. A snapshot is ready when it is answered. */
import {
  CreateSnapshotRequestSchema,
  CreateVolumeGroupSnapshotRequestSchema,
  type CsiServices,
  CsiStatusError,
  checkName,
  DeleteSnapshotRequestSchema,
  DeleteVolumeGroupSnapshotRequestSchema,
  GetSnapshotRequestSchema,
  GetVolumeGroupSnapshotRequestSchema,
  GroupControllerServiceCapability_RPC_Type as GroupRpc,
  ListSnapshotsRequestSchema,
  type MessageInitShape,
  type SnapshotSchema,
} from "@longshore/csi";
import type { DiskSnapshot, ProviderCloud, SnapshotGroup } from "../disk-cloud/index.ts";
import type { DriverKind } from "./kinds/driver-kind.ts";
import { pageOf } from "./pages.ts";
import { PendingCalls } from "./pending-calls.ts";
import { type RequestChecks, requestChecks } from "./request-checks.ts";
import { type VolumeIndex, volumeIndex } from "./volume-index.ts";

/** What the handlers work with. */
export interface SnapshotContext {
  readonly cloud: ProviderCloud;
  readonly kind: DriverKind;
  readonly rpc: RequestChecks;
  readonly index: VolumeIndex;
  readonly pending: PendingCalls;
}

type Controller = NonNullable<CsiServices["controller"]>;
type SnapshotRpc = "createSnapshot" | "deleteSnapshot" | "listSnapshots" | "getSnapshot";

/** The controller's part. */
export function snapshotHandlers(context: SnapshotContext): Required<Pick<Controller, SnapshotRpc>> {
  const { cloud, kind, rpc, index, pending } = context;
  return {
    createSnapshot: rpc(CreateSnapshotRequestSchema, ["source_volume_id", "name"], (request, signal) => {
      checkName(request.name);
      return pending.alone(`snapshot ${request.name}`, async () => {
        const present = (await cloud.listSnapshots(signal)).find(
          ({ name, groupId }) => name === request.name && groupId === undefined,
        );
        const disk = await index.find(request.sourceVolumeId, signal);
        if (disk === undefined && present === undefined) {
          throw new CsiStatusError("NOT_FOUND", `volume ${request.sourceVolumeId} does not exist`);
        }
        // The volume may be deleted by now. An id of the cloud's own still identifies the snapshot's source.
        const diskId = disk?.id ?? kind.diskIdsOf(request.sourceVolumeId)[0] ?? request.sourceVolumeId;
        const snapshot = await cloud.createSnapshot({ name: request.name, diskId }, signal);
        return { snapshot: await shown(context, snapshot, signal) };
      });
    }),

    deleteSnapshot: rpc(DeleteSnapshotRequestSchema, ["snapshot_id"], ({ snapshotId }, signal) =>
      pending.alone(snapshotId, async () => {
        await cloud.deleteSnapshot(snapshotId, signal);
        return {};
      }),
    ),

    listSnapshots: rpc(ListSnapshotsRequestSchema, [], async (request, signal) => {
      const { snapshotId, sourceVolumeId } = request;
      const all = (await cloud.listSnapshots(signal)).filter(
        ({ id }) => snapshotId === "" || id === snapshotId,
      );
      const known = await sourceIds(context, all, signal);
      const meant = all.filter(({ id }) => sourceVolumeId === "" || known.get(id) === sourceVolumeId);
      const page = pageOf(meant, request, /^snap-[0-9a-f]+$/);
      const entries = page.entries.map((snapshot) => ({ snapshot: toCsi(snapshot, known) }));
      return { entries, nextToken: page.nextToken };
    }),

    getSnapshot: rpc(GetSnapshotRequestSchema, ["snapshot_id"], async ({ snapshotId }, signal) => {
      const snapshot = (await cloud.listSnapshots(signal)).find(({ id }) => id === snapshotId);
      if (snapshot === undefined) {
        throw new CsiStatusError("NOT_FOUND", `snapshot ${snapshotId} does not exist`);
      }
      return { snapshot: await shown(context, snapshot, signal) };
    }),
  };
}

/** Builds the group controller. */
export function groupControllerService(
  cloud: ProviderCloud,
  kind: DriverKind,
): NonNullable<CsiServices["groupController"]> {
  const rpc = requestChecks(kind);
  const index = volumeIndex(cloud, kind);
  const pending = new PendingCalls();
  const context = { cloud, kind, rpc, index, pending };

  async function groupToCsi(group: SnapshotGroup, signal: AbortSignal) {
    const known = await sourceIds(context, group.snapshots, signal);
    return {
      groupSnapshotId: group.id,
      snapshots: group.snapshots.map((snapshot) => toCsi(snapshot, known)),
      creationTime: timestampOf(group.createdAt),
      readyToUse: true,
    };
  }

  return {
    groupControllerGetCapabilities: async () => ({
      capabilities: [
        {
          type: {
            case: "rpc" as const,
            value: { type: GroupRpc.CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT },
          },
        },
      ],
    }),

    createVolumeGroupSnapshot: rpc(
      CreateVolumeGroupSnapshotRequestSchema,
      ["name", "source_volume_ids"],
      (request, signal) => {
        checkName(request.name);
        return pending.alone(`group ${request.name}`, async () => {
          const diskIds: string[] = [];
          for (const volumeId of request.sourceVolumeIds) {
            // Of a group that is there already, volumes may be gone since.
            diskIds.push((await index.find(volumeId, signal))?.id ?? volumeId);
          }
          const group = await cloud.createSnapshotGroup({ name: request.name, diskIds }, signal);
          return { groupSnapshot: await groupToCsi(group, signal) };
        });
      },
    ),

    deleteVolumeGroupSnapshot: rpc(
      DeleteVolumeGroupSnapshotRequestSchema,
      ["group_snapshot_id"],
      ({ groupSnapshotId, snapshotIds }, signal) =>
        pending.alone(groupSnapshotId, async () => {
          const group = await cloud.describeSnapshotGroup(groupSnapshotId, signal);
          if (group !== undefined) checkMembers(group, snapshotIds);
          await cloud.deleteSnapshotGroup(groupSnapshotId, signal);
          return {};
        }),
    ),

    getVolumeGroupSnapshot: rpc(
      GetVolumeGroupSnapshotRequestSchema,
      ["group_snapshot_id"],
      async ({ groupSnapshotId, snapshotIds }, signal) => {
        const group = await cloud.describeSnapshotGroup(groupSnapshotId, signal);
        if (group === undefined) {
          throw new CsiStatusError("NOT_FOUND", `group snapshot ${groupSnapshotId} does not exist`);
        }
        checkMembers(group, snapshotIds);
        return { groupSnapshot: await groupToCsi(group, signal) };
      },
    ),
  };
}

/** @throws CsiStatusError INVALID_ARGUMENT when ids are given and are not those of the group's snapshots */
function checkMembers(group: SnapshotGroup, snapshotIds: readonly string[]): void {
  const members = new Set(group.snapshots.map(({ id }) => id));
  const given = new Set(snapshotIds);
  const isSame = members.size === given.size && [...given].every((id) => members.has(id));
  if (given.size === 0 || isSame) return;
  throw new CsiStatusError(
    "INVALID_ARGUMENT",
    `snapshot_ids are not the snapshots of group ${group.id}: it has ${[...members].join(", ")}`,
  );
}

async function shown(context: SnapshotContext, snapshot: DiskSnapshot, signal: AbortSignal) {
  return toCsi(snapshot, await sourceIds(context, [snapshot], signal));
}

/** The volume ids of the snapshots' disks, by snapshot; the disk's own id where it is gone. */
async function sourceIds(
  { cloud, kind }: Pick<SnapshotContext, "cloud" | "kind">,
  snapshots: readonly DiskSnapshot[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const disks = kind.usesDiskIds || snapshots.length === 0 ? [] : await cloud.listDisks(signal);
  return new Map(
    snapshots.map(({ id, diskId }) => {
      const disk = disks.find((d) => d.id === diskId);
      return [id, disk === undefined ? diskId : kind.volumeIdOf(disk)];
    }),
  );
}

function toCsi(
  snapshot: DiskSnapshot,
  known: ReadonlyMap<string, string>,
): MessageInitShape<typeof SnapshotSchema> {
  const { id, sizeBytes, createdAt, diskId, groupId = "" } = snapshot;
  return {
    snapshotId: id,
    sizeBytes,
    sourceVolumeId: known.get(id) ?? diskId,
    creationTime: timestampOf(createdAt),
    readyToUse: true,
    groupSnapshotId: groupId,
  };
}

function timestampOf(rfc3339: string): { readonly seconds: bigint; readonly nanos: number } {
  const ms = Date.parse(rfc3339);
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
}
