/** Snapshots at a driver, in memory, for tests of the snapshotter. They outlive their driver. */
import {
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  type CsiServices,
  CsiStatusError,
  GroupControllerServiceCapability_RPC_Type as GroupRpc,
  PluginCapability_Service_Type as Service,
} from "@longshore/csi";
import type { FakeCloud } from "./fake-driver.ts";

/** One snapshot. */
export interface FakeSnapshot {
  readonly name: string;
  readonly sourceVolumeId: string;
  /** Calls of CreateSnapshot, or looks, until it is ready. */
  looksUntilReady: number;
  readonly groupId: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** What the driver says of itself. */
export interface FakeSnapshotsOptions {
  readonly name?: string;
  readonly listsSnapshots?: boolean;
  readonly groups?: boolean;
  readonly makesSnapshots?: boolean;
  /** Looks that a new snapshot needs until it is ready; default 0. */
  readonly looksUntilReady?: number;
}

/** The snapshots, and the secrets that calls brought. */
export class FakeSnapshots {
  readonly byId = new Map<string, FakeSnapshot>();
  readonly groups = new Map<string, { readonly name: string; readonly members: readonly string[] }>();
  /** `RPC key=value,…` of the secrets of each call. */
  readonly secrets: string[] = [];
  #made = 0;

  create(name: string, sourceVolumeId: string, looks: number, groupId = "", parameters = {}): string {
    for (const [id, snapshot] of this.byId) {
      if (snapshot.name !== name) continue;
      if (snapshot.sourceVolumeId !== sourceVolumeId) {
        throw new CsiStatusError("ALREADY_EXISTS", `snapshot ${name} is of another volume`);
      }
      return id;
    }
    const id = `snap-${String(++this.#made).padStart(4, "0")}`;
    this.byId.set(id, { name, sourceVolumeId, looksUntilReady: looks, groupId, parameters });
    return id;
  }

  /** The snapshot as an answer; each look brings it nearer to being ready. */
  look(id: string) {
    const snapshot = this.byId.get(id);
    if (snapshot === undefined) throw new CsiStatusError("NOT_FOUND", `no snapshot ${id}`);
    const readyToUse = snapshot.looksUntilReady <= 0;
    snapshot.looksUntilReady--;
    return {
      snapshotId: id,
      sourceVolumeId: snapshot.sourceVolumeId,
      creationTime: { seconds: 1_700_000_000n, nanos: 123_456_789 },
      sizeBytes: 1n << 30n,
      readyToUse,
      groupSnapshotId: snapshot.groupId,
    };
  }
}

/** The driver's services. Calls are noted in `cloud`, which also says how the next ones end. */
export function snapshotDriver(
  cloud: FakeCloud,
  snapshots: FakeSnapshots,
  options: FakeSnapshotsOptions = {},
): CsiServices {
  const { name = "ebs.csi.aws.com", makesSnapshots = true, looksUntilReady = 0 } = options;
  const rpcs = [
    ...(makesSnapshots ? [ControllerRpc.CREATE_DELETE_SNAPSHOT] : []),
    ...(options.listsSnapshots ? [ControllerRpc.LIST_SNAPSHOTS] : []),
  ];
  const services = [
    Service.CONTROLLER_SERVICE,
    ...(options.groups ? [Service.GROUP_CONTROLLER_SERVICE] : []),
  ];
  const noteSecrets = (rpc: string, secrets: Readonly<Record<string, string>>) => {
    const pairs = Object.entries(secrets).map(([key, value]) => `${key}=${value}`);
    if (pairs.length > 0) snapshots.secrets.push(`${rpc} ${pairs.join(",")}`);
  };
  const group = (id: string) => {
    const found = snapshots.groups.get(id);
    if (found === undefined) throw new CsiStatusError("NOT_FOUND", `no group ${id}`);
    const members = found.members.map((member) => snapshots.look(member));
    return {
      groupSnapshot: {
        groupSnapshotId: id,
        snapshots: members,
        creationTime: { seconds: 1_700_000_000n, nanos: 0 },
        readyToUse: members.every(({ readyToUse }) => readyToUse),
      },
    };
  };
  return {
    identity: {
      getPluginInfo: async () => ({ name, vendorVersion: "test" }),
      getPluginCapabilities: async () => ({
        capabilities: services.map((type) => ({ type: { case: "service" as const, value: { type } } })),
      }),
      probe: async () => ({ ready: true }),
    },
    controller: {
      controllerGetCapabilities: async () => ({
        capabilities: rpcs.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
      }),
      createSnapshot: (request) =>
        cloud.run("CreateSnapshot", `${request.name} of ${request.sourceVolumeId}`, () => {
          noteSecrets("CreateSnapshot", request.secrets);
          const { name: snapshotName, sourceVolumeId, parameters } = request;
          return {
            snapshot: snapshots.look(
              snapshots.create(snapshotName, sourceVolumeId, looksUntilReady, "", parameters),
            ),
          };
        }),
      deleteSnapshot: (request) =>
        cloud.run("DeleteSnapshot", request.snapshotId, () => {
          noteSecrets("DeleteSnapshot", request.secrets);
          if (snapshots.byId.get(request.snapshotId)?.groupId) {
            throw new CsiStatusError("INVALID_ARGUMENT", "the snapshot is one of a group");
          }
          snapshots.byId.delete(request.snapshotId);
          return {};
        }),
      listSnapshots: (request) =>
        cloud.run("ListSnapshots", request.snapshotId, () => {
          noteSecrets("ListSnapshots", request.secrets);
          const known = snapshots.byId.has(request.snapshotId);
          return { entries: known ? [{ snapshot: snapshots.look(request.snapshotId) }] : [] };
        }),
    },
    groupController: {
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
      createVolumeGroupSnapshot: (request) =>
        cloud.run("CreateVolumeGroupSnapshot", request.name, () => {
          noteSecrets("CreateVolumeGroupSnapshot", request.secrets);
          const id = `group-of-${request.name}`;
          if (!snapshots.groups.has(id)) {
            const members = request.sourceVolumeIds.map((volume) =>
              snapshots.create(`${request.name}/${volume}`, volume, looksUntilReady, id),
            );
            snapshots.groups.set(id, { name: request.name, members });
          }
          return group(id);
        }),
      getVolumeGroupSnapshot: (request) =>
        cloud.run("GetVolumeGroupSnapshot", request.groupSnapshotId, () => {
          noteSecrets("GetVolumeGroupSnapshot", request.secrets);
          return group(request.groupSnapshotId);
        }),
      deleteVolumeGroupSnapshot: (request) =>
        cloud.run("DeleteVolumeGroupSnapshot", request.groupSnapshotId, () => {
          noteSecrets("DeleteVolumeGroupSnapshot", request.secrets);
          const found = snapshots.groups.get(request.groupSnapshotId);
          if (found === undefined) return {};
          if ([...request.snapshotIds].sort().join() !== [...found.members].sort().join()) {
            throw new CsiStatusError("INVALID_ARGUMENT", "these are not the snapshots of the group");
          }
          for (const member of found.members) snapshots.byId.delete(member);
          snapshots.groups.delete(request.groupSnapshotId);
          return {};
        }),
    },
  };
}
