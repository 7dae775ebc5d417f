/**
 * A driver with every capability, in memory, its volumes directories of a host: what the suite's own tests run
 * against. Its state is an object that outlives it, so that a crash is dropping the driver.
 */
import {
  BlockMetadataType,
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  type CreateVolumeRequest,
  type CsiServices,
  CsiStatusError,
  GroupControllerServiceCapability_RPC_Type as GroupRpc,
  type GrpcCode,
  VolumeCapability_AccessMode_Mode as Mode,
  NodeServiceCapability_RPC_Type as NodeRpc,
  PluginCapability_Service_Type as Service,
  type VolumeCapability,
  PluginCapability_VolumeExpansion_Type as VolumeExpansion,
  VolumeUsage_Unit,
} from "@longshore/csi";
import type { SimulatedHost } from "@longshore/runtime";

/** What is stored of a volume. */
interface StoredVolume {
  readonly id: string;
  readonly name: string;
  sizeBytes: bigint;
  readonly source: CreateVolumeRequest["volumeContentSource"];
  readonly nodes: Map<string, { readonly readonly: boolean; readonly access: string | undefined }>;
  readonly staged: Map<string, { readonly access: string | undefined }>;
  readonly published: Map<string, { readonly key: string; readonly mode: number | undefined }>;
}
interface StoredSnapshot {
  readonly id: string;
  readonly name: string;
  readonly sourceId: string;
  readonly sizeBytes: bigint;
  readonly seconds: bigint;
  readonly groupId: string;
  readonly data: string | undefined;
}
interface StoredGroup {
  readonly id: string;
  readonly name: string;
  readonly sources: string;
  readonly snapshotIds: readonly string[];
}

/** What the driver would keep on disk. */
export class FakeState {
  readonly volumes = new Map<string, StoredVolume>();
  readonly snapshots = new Map<string, StoredSnapshot>();
  readonly groups = new Map<string, StoredGroup>();
  next = 1;
}

/** Options of {@link fakeDriver}. */
export interface FakeDriverOptions {
  readonly host: SimulatedHost;
  readonly state: FakeState;
  /** Seconds since 1970, for snapshots. */
  readonly seconds: () => bigint;
  /** Directory on the host for the data of volumes. */
  readonly dir: string;
  /** Capabilities that are not declared, by name; their calls are refused. */
  readonly without?: readonly string[];
  readonly maxVolumes?: bigint;
}

const fail = (code: GrpcCode, message: string): never => {
  throw new CsiStatusError(code, message);
};
const need = (value: unknown, field: string) => {
  if (value === "" || value === undefined || (Array.isArray(value) && value.length === 0)) {
    fail("INVALID_ARGUMENT", `${field} is required`);
  }
};
const biggestBytes = 2n ** 50n;
const zone = "topology.fake.csi/zone";
const nodes = ["node-1", "node-2"];
const dataFile = "longshore-check";
const blockBytes = 256 * 1024;

function capable(capability: VolumeCapability | undefined): VolumeCapability {
  if (capability === undefined) return fail("INVALID_ARGUMENT", "volume_capability is required");
  if (capability.accessType.case === undefined) fail("INVALID_ARGUMENT", "access_type is required");
  if ((capability.accessMode?.mode ?? Mode.UNKNOWN) === Mode.UNKNOWN) {
    fail("INVALID_ARGUMENT", "access_mode is required");
  }
  return capability;
}

function sizeOf(range: { requiredBytes: bigint; limitBytes: bigint } | undefined): bigint {
  const { requiredBytes = 0n, limitBytes = 0n } = range ?? {};
  if (requiredBytes < 0n || limitBytes < 0n) fail("INVALID_ARGUMENT", "a size is negative");
  if (limitBytes !== 0n && limitBytes < requiredBytes) fail("INVALID_ARGUMENT", "limit below required");
  if (requiredBytes > biggestBytes) fail("OUT_OF_RANGE", "too large");
  return requiredBytes || limitBytes || 2n ** 30n;
}

function largerOf(a: bigint, b: bigint): bigint {
  return a < b ? b : a;
}

function paged<T extends { readonly id: string }>(
  all: Iterable<T>,
  { maxEntries, startingToken }: { readonly maxEntries: number; readonly startingToken: string },
): { readonly page: readonly T[]; readonly nextToken: string } {
  if (maxEntries < 0) fail("INVALID_ARGUMENT", "max_entries is negative");
  if (startingToken !== "" && !/^after-/.test(startingToken)) fail("ABORTED", "unknown starting_token");
  const after = startingToken.slice("after-".length);
  const rest = [...all].sort((a, b) => (a.id < b.id ? -1 : 1)).filter(({ id }) => id > after);
  const page = maxEntries === 0 ? rest : rest.slice(0, maxEntries);
  return { page, nextToken: page.length < rest.length ? `after-${page.at(-1)?.id ?? ""}` : "" };
}

/** The services of the fake. */
export function fakeDriver(options: FakeDriverOptions): CsiServices {
  const { host, state, dir } = options;
  const without = new Set(options.without);
  const has = (name: string) => !without.has(name);
  const id = (kind: string) => `${kind}-${String(state.next++).padStart(6, "0")}`;
  const condition = { abnormal: false, message: "the volume is in order" };
  const named = <T extends { readonly name: string }>(all: Map<string, T>, name: string) =>
    [...all.values()].find((each) => each.name === name);
  const busy = new Set<string>();

  async function alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (busy.has(key)) fail("ABORTED", "another call for it is under way");
    busy.add(key);
    try {
      // Others get a turn, as with a driver that works for a while.
      await Promise.resolve();
      return await work();
    } finally {
      busy.delete(key);
    }
  }

  const volumeAt = (volumeId: string): StoredVolume => {
    need(volumeId, "volume_id");
    return state.volumes.get(volumeId) ?? fail("NOT_FOUND", `volume ${volumeId} does not exist`);
  };
  const pathOf = (volumeId: string) => `${dir}/${volumeId}`;
  /** What backs the device of a volume for block access. */
  const diskOf = (volumeId: string) => `${dir}/${volumeId}.disk`;
  const absolute = (path: string, field: string) => {
    need(path, field);
    if (!path.startsWith("/")) fail("INVALID_ARGUMENT", `${field} is not absolute`);
  };
  const message = (volume: StoredVolume) => ({
    volumeId: volume.id,
    capacityBytes: volume.sizeBytes,
    volumeContext: { kind: "fake" },
    ...(volume.source === undefined ? {} : { contentSource: volume.source }),
    accessibleTopology: has("VOLUME_ACCESSIBILITY_CONSTRAINTS") ? [{ segments: { [zone]: "a" } }] : [],
  });
  const statusOf = (volume: StoredVolume) => ({
    publishedNodeIds: [...volume.nodes.keys()],
    volumeCondition: condition,
  });
  const snapshotMessage = (snapshot: StoredSnapshot) => ({
    snapshotId: snapshot.id,
    sourceVolumeId: snapshot.sourceId,
    sizeBytes: snapshot.sizeBytes,
    creationTime: { seconds: snapshot.seconds, nanos: 0 },
    readyToUse: true,
    groupSnapshotId: snapshot.groupId,
  });
  const mutable = (parameters: Readonly<Record<string, string>>) => {
    for (const key of Object.keys(parameters)) {
      if (key !== "iops") fail("INVALID_ARGUMENT", `mutable parameter ${key} is not known`);
    }
  };
  const dataOf = async (volumeId: string) => {
    const device = await host.findLoop(diskOf(volumeId));
    return device === undefined ? host.readFile(`${pathOf(volumeId)}/${dataFile}`) : host.readDevice(device);
  };

  async function sourceData(
    request: CreateVolumeRequest,
  ): Promise<{ data: string | undefined; sizeBytes: bigint }> {
    const source = request.volumeContentSource?.type;
    if (source?.case === "volume") {
      if (!has("CLONE_VOLUME")) fail("INVALID_ARGUMENT", "clones are not offered");
      const volume = volumeAt(source.value.volumeId);
      return { data: await dataOf(volume.id), sizeBytes: volume.sizeBytes };
    }
    if (source?.case === "snapshot") {
      if (!has("CREATE_DELETE_SNAPSHOT")) fail("INVALID_ARGUMENT", "snapshots are not offered");
      const snapshot = state.snapshots.get(source.value.snapshotId);
      if (snapshot === undefined) return fail("NOT_FOUND", "the snapshot does not exist");
      return snapshot;
    }
    return { data: undefined, sizeBytes: 0n };
  }

  const sourceText = (source: CreateVolumeRequest["volumeContentSource"]) =>
    source?.type.case === undefined ? "" : JSON.stringify([source.type.case, { ...source.type.value }]);

  const controller: NonNullable<CsiServices["controller"]> = {
    controllerGetCapabilities: async () => ({
      capabilities: Object.entries(ControllerRpc)
        .filter(([name]) => name !== "UNKNOWN" && has(name))
        .map(([, type]) => ({ type: { case: "rpc" as const, value: { type: type as 1 } } })),
    }),
    createVolume: (request) =>
      alone(`volume ${request.name}`, async () => {
        need(request.name, "name");
        need(request.volumeCapabilities, "volume_capabilities");
        for (const capability of request.volumeCapabilities) capable(capability);
        mutable(request.mutableParameters);
        const asked = sizeOf(request.capacityRange);
        const { limitBytes = 0n, requiredBytes = 0n } = request.capacityRange ?? {};
        const terms = request.accessibilityRequirements?.requisite ?? [];
        if (terms.length > 0 && !terms.some(({ segments }) => segments[zone] === "a")) {
          fail("RESOURCE_EXHAUSTED", "no such zone");
        }
        const { data, sizeBytes: sourceBytes } = await sourceData(request);
        const present = named(state.volumes, request.name);
        if (present !== undefined) {
          const fits =
            present.sizeBytes >= requiredBytes && (limitBytes === 0n || present.sizeBytes <= limitBytes);
          if (!fits || sourceText(present.source) !== sourceText(request.volumeContentSource)) {
            fail("ALREADY_EXISTS", "the name is taken by another volume");
          }
          return { volume: message(present) };
        }
        if (limitBytes !== 0n && limitBytes < sourceBytes) fail("OUT_OF_RANGE", "the source is larger");
        const volume: StoredVolume = {
          id: id("vol"),
          name: request.name,
          sizeBytes: largerOf(asked, sourceBytes),
          source: request.volumeContentSource,
          nodes: new Map(),
          staged: new Map(),
          published: new Map(),
        };
        await host.makeDirectory(pathOf(volume.id));
        if (data !== undefined) await host.writeFileAtomic(`${pathOf(volume.id)}/${dataFile}`, data);
        state.volumes.set(volume.id, volume);
        return { volume: message(volume) };
      }),
    deleteVolume: ({ volumeId }) =>
      alone(volumeId, async () => {
        need(volumeId, "volume_id");
        const volume = state.volumes.get(volumeId);
        if (volume === undefined) return {};
        if (volume.nodes.size > 0) fail("FAILED_PRECONDITION", "the volume is published");
        state.volumes.delete(volumeId);
        await host.detachLoop(diskOf(volumeId));
        await host.removeFile(diskOf(volumeId));
        await host.removeTree(pathOf(volumeId));
        return {};
      }),
    validateVolumeCapabilities: async (request) => {
      need(request.volumeId, "volume_id");
      need(request.volumeCapabilities, "volume_capabilities");
      volumeAt(request.volumeId);
      try {
        for (const capability of request.volumeCapabilities) capable(capability);
      } catch {
        return { message: "not supported" };
      }
      return { confirmed: { volumeCapabilities: request.volumeCapabilities } };
    },
    listVolumes: async (request) => {
      const { page, nextToken } = paged(state.volumes.values(), request);
      return { nextToken, entries: page.map((v) => ({ volume: message(v), status: statusOf(v) })) };
    },
    controllerGetVolume: async ({ volumeId }) => {
      const volume = volumeAt(volumeId);
      return { volume: message(volume), status: statusOf(volume) };
    },
    getCapacity: async ({ accessibleTopology }) => {
      const elsewhere = accessibleTopology !== undefined && accessibleTopology.segments[zone] !== "a";
      return {
        availableCapacity: elsewhere ? 0n : biggestBytes,
        maximumVolumeSize: biggestBytes,
        minimumVolumeSize: 1n,
      };
    },
    controllerPublishVolume: (request) =>
      alone(request.volumeId, async () => {
        need(request.nodeId, "node_id");
        const volume = volumeAt(request.volumeId);
        const access = capable(request.volumeCapability).accessType.case;
        if (!nodes.includes(request.nodeId)) fail("NOT_FOUND", "the node does not exist");
        const present = volume.nodes.get(request.nodeId);
        if (present !== undefined) {
          if (present.readonly !== request.readonly || present.access !== access) {
            fail("ALREADY_EXISTS", "published otherwise");
          }
        } else {
          if (volume.nodes.size > 0) fail("FAILED_PRECONDITION", "published to another node");
          const full = [...state.volumes.values()].filter((v) => v.nodes.has(request.nodeId)).length;
          if (options.maxVolumes !== undefined && BigInt(full) >= options.maxVolumes) {
            fail("RESOURCE_EXHAUSTED", "the node is full");
          }
          volume.nodes.set(request.nodeId, { readonly: request.readonly, access });
        }
        return { publishContext: { device: `/dev/${volume.id}` } };
      }),
    controllerUnpublishVolume: (request) =>
      alone(request.volumeId, async () => {
        need(request.volumeId, "volume_id");
        const volume = state.volumes.get(request.volumeId);
        if (request.nodeId === "") volume?.nodes.clear();
        else volume?.nodes.delete(request.nodeId);
        return {};
      }),
    controllerExpandVolume: (request) =>
      alone(request.volumeId, async () => {
        need(request.volumeId, "volume_id");
        need(request.capacityRange, "capacity_range");
        const sizeBytes = sizeOf(request.capacityRange);
        const volume = volumeAt(request.volumeId);
        if (!has("VOLUME_EXPANSION_ONLINE") && volume.nodes.size > 0) {
          fail("FAILED_PRECONDITION", "the volume is published");
        }
        if (sizeBytes > volume.sizeBytes) volume.sizeBytes = sizeBytes;
        return { capacityBytes: volume.sizeBytes, nodeExpansionRequired: true };
      }),
    controllerModifyVolume: async (request) => {
      need(request.volumeId, "volume_id");
      mutable(request.mutableParameters);
      volumeAt(request.volumeId);
      return {};
    },
    createSnapshot: (request) =>
      alone(`snapshot ${request.name}`, async () => {
        need(request.name, "name");
        need(request.sourceVolumeId, "source_volume_id");
        const present = named(state.snapshots, request.name);
        if (present !== undefined) {
          if (present.sourceId !== request.sourceVolumeId) fail("ALREADY_EXISTS", "the name is taken");
          return { snapshot: snapshotMessage(present) };
        }
        const { id: sourceId, sizeBytes } = volumeAt(request.sourceVolumeId);
        const snapshot: StoredSnapshot = {
          id: id("snap"),
          name: request.name,
          sourceId,
          sizeBytes,
          seconds: options.seconds(),
          groupId: "",
          data: await dataOf(sourceId),
        };
        state.snapshots.set(snapshot.id, snapshot);
        return { snapshot: snapshotMessage(snapshot) };
      }),
    deleteSnapshot: async ({ snapshotId }) => {
      need(snapshotId, "snapshot_id");
      if (state.snapshots.get(snapshotId)?.groupId) fail("INVALID_ARGUMENT", "it belongs to a group");
      state.snapshots.delete(snapshotId);
      return {};
    },
    listSnapshots: async (request) => {
      const all = [...state.snapshots.values()].filter(
        (snapshot) =>
          (request.snapshotId === "" || snapshot.id === request.snapshotId) &&
          (request.sourceVolumeId === "" || snapshot.sourceId === request.sourceVolumeId),
      );
      const { page, nextToken } = paged(all, request);
      return { nextToken, entries: page.map((snapshot) => ({ snapshot: snapshotMessage(snapshot) })) };
    },
    getSnapshot: async ({ snapshotId }) => {
      need(snapshotId, "snapshot_id");
      const snapshot = state.snapshots.get(snapshotId);
      if (snapshot === undefined) return fail("NOT_FOUND", "the snapshot does not exist");
      return { snapshot: snapshotMessage(snapshot) };
    },
  };

  const groupMessage = (group: StoredGroup) => ({
    groupSnapshotId: group.id,
    creationTime: { seconds: 1n, nanos: 0 },
    readyToUse: true,
    snapshots: group.snapshotIds.map((each) => snapshotMessage(state.snapshots.get(each) as StoredSnapshot)),
  });
  const sameSnapshots = (group: StoredGroup, ids: readonly string[]) => {
    if (ids.length > 0 && [...ids].sort().join() !== [...group.snapshotIds].sort().join()) {
      fail("INVALID_ARGUMENT", "snapshot_ids are not those of the group");
    }
  };
  const groupController: NonNullable<CsiServices["groupController"]> = {
    groupControllerGetCapabilities: async () => ({
      capabilities: [
        { type: { case: "rpc", value: { type: GroupRpc.CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT } } },
      ],
    }),
    createVolumeGroupSnapshot: async (request) => {
      need(request.name, "name");
      need(request.sourceVolumeIds, "source_volume_ids");
      const sources = [...request.sourceVolumeIds].sort().join();
      const present = named(state.groups, request.name);
      if (present !== undefined) {
        if (present.sources !== sources) fail("ALREADY_EXISTS", "the name is taken");
        return { groupSnapshot: groupMessage(present) };
      }
      for (const volumeId of request.sourceVolumeIds) volumeAt(volumeId);
      const groupId = id("group");
      const snapshotIds = request.sourceVolumeIds.map((sourceId) => {
        const { sizeBytes } = volumeAt(sourceId);
        const snapshotId = id("snap");
        const name = `${groupId}/${sourceId}`;
        state.snapshots.set(snapshotId, {
          id: snapshotId,
          name,
          sourceId,
          sizeBytes,
          seconds: 1n,
          groupId,
          data: undefined,
        });
        return snapshotId;
      });
      const group = { id: groupId, name: request.name, sources, snapshotIds };
      state.groups.set(groupId, group);
      return { groupSnapshot: groupMessage(group) };
    },
    deleteVolumeGroupSnapshot: async (request) => {
      need(request.groupSnapshotId, "group_snapshot_id");
      const group = state.groups.get(request.groupSnapshotId);
      if (group === undefined) return {};
      sameSnapshots(group, request.snapshotIds);
      for (const each of group.snapshotIds) state.snapshots.delete(each);
      state.groups.delete(group.id);
      return {};
    },
    getVolumeGroupSnapshot: async (request) => {
      need(request.groupSnapshotId, "group_snapshot_id");
      const group = state.groups.get(request.groupSnapshotId);
      if (group === undefined) return fail("NOT_FOUND", "the group does not exist");
      sameSnapshots(group, request.snapshotIds);
      return { groupSnapshot: groupMessage(group) };
    },
  };

  const snapshotAt = (snapshotId: string) =>
    state.snapshots.get(snapshotId) ?? fail("NOT_FOUND", "the snapshot does not exist");
  async function* metadata(
    snapshotId: string,
    base: string | undefined,
    { startingOffset, maxResults }: { readonly startingOffset: bigint; readonly maxResults: number },
  ) {
    const { data = "", sizeBytes } = snapshotAt(snapshotId);
    const before = base === undefined ? "" : (snapshotAt(base).data ?? "");
    if (startingOffset > sizeBytes) fail("OUT_OF_RANGE", "beyond the end");
    const tuples: { byteOffset: bigint; sizeBytes: bigint }[] = [];
    const from = Math.floor(Number(startingOffset) / blockBytes) * blockBytes;
    for (let at = from; at < Math.max(data.length, before.length); at += blockBytes) {
      if (data.slice(at, at + blockBytes) === before.slice(at, at + blockBytes)) continue;
      tuples.push({ byteOffset: BigInt(at), sizeBytes: BigInt(blockBytes) });
    }
    do {
      const blockMetadata = tuples.splice(0, maxResults || 5);
      yield {
        blockMetadataType: BlockMetadataType.FIXED_LENGTH,
        volumeCapacityBytes: sizeBytes,
        blockMetadata,
      };
    } while (tuples.length > 0);
  }
  const snapshotMetadata: NonNullable<CsiServices["snapshotMetadata"]> = {
    async *getMetadataAllocated(request) {
      need(request.snapshotId, "snapshot_id");
      yield* metadata(request.snapshotId, undefined, request);
    },
    async *getMetadataDelta(request) {
      need(request.baseSnapshotId, "base_snapshot_id");
      need(request.targetSnapshotId, "target_snapshot_id");
      yield* metadata(request.targetSnapshotId, request.baseSnapshotId, request);
    },
  };

  const node: NonNullable<CsiServices["node"]> = {
    nodeGetCapabilities: async () => ({
      capabilities: Object.entries(NodeRpc)
        .filter(([name]) => name !== "UNKNOWN" && has(name) && has(`NODE_${name}`))
        .map(([, type]) => ({ type: { case: "rpc" as const, value: { type: type as 1 } } })),
    }),
    nodeGetInfo: async () => ({
      nodeId: "node-1",
      maxVolumesPerNode: options.maxVolumes ?? 0n,
      ...(has("VOLUME_ACCESSIBILITY_CONSTRAINTS")
        ? { accessibleTopology: { segments: { [zone]: "a" } } }
        : {}),
    }),
    nodeStageVolume: (request) =>
      alone(request.volumeId, async () => {
        absolute(request.stagingTargetPath, "staging_target_path");
        const access = capable(request.volumeCapability).accessType.case;
        const volume = volumeAt(request.volumeId);
        const present = volume.staged.get(request.stagingTargetPath);
        if (present !== undefined) {
          if (present.access !== access) fail("ALREADY_EXISTS", "staged otherwise");
          return {};
        }
        if (access === "mount") await host.bindMount(pathOf(volume.id), request.stagingTargetPath);
        volume.staged.set(request.stagingTargetPath, { access });
        return {};
      }),
    nodeUnstageVolume: (request) =>
      alone(request.volumeId, async () => {
        need(request.volumeId, "volume_id");
        need(request.stagingTargetPath, "staging_target_path");
        if (await host.isMountPoint(request.stagingTargetPath)) await host.unmount(request.stagingTargetPath);
        state.volumes.get(request.volumeId)?.staged.delete(request.stagingTargetPath);
        return {};
      }),
    nodePublishVolume: (request) =>
      alone(request.volumeId, async () => {
        absolute(request.targetPath, "target_path");
        const capability = capable(request.volumeCapability);
        const volume = volumeAt(request.volumeId);
        const access = capability.accessType.case;
        if (has("STAGE_UNSTAGE_VOLUME") && !volume.staged.has(request.stagingTargetPath)) {
          fail("FAILED_PRECONDITION", "the volume is not staged there");
        }
        const mode = capability.accessMode?.mode;
        const key = JSON.stringify([access, mode, request.readonly]);
        const present = volume.published.get(request.targetPath);
        if (present !== undefined) {
          if (present.key !== key) fail("ALREADY_EXISTS", "published otherwise");
          return {};
        }
        if (mode === Mode.SINGLE_NODE_SINGLE_WRITER && volume.published.size > 0) {
          fail("FAILED_PRECONDITION", "published elsewhere on this node");
        }
        if (access === "block") {
          await host.truncateFile(diskOf(volume.id), Number(volume.sizeBytes));
          await host.writeFileAtomic(request.targetPath, "");
          await host.bindMount(await host.attachLoop(diskOf(volume.id)), request.targetPath);
        } else {
          await host.makeDirectory(request.targetPath);
          await host.bindMount(pathOf(volume.id), request.targetPath, { readOnly: request.readonly });
        }
        volume.published.set(request.targetPath, { key, mode });
        return {};
      }),
    nodeUnpublishVolume: (request) =>
      alone(request.volumeId, async () => {
        need(request.volumeId, "volume_id");
        need(request.targetPath, "target_path");
        if (await host.isMountPoint(request.targetPath)) await host.unmount(request.targetPath);
        const kind = (await host.stat(request.targetPath))?.kind;
        if (kind === "directory") await host.removeDirectory(request.targetPath);
        else if (kind !== undefined) await host.removeFile(request.targetPath);
        state.volumes.get(request.volumeId)?.published.delete(request.targetPath);
        return {};
      }),
    nodeGetVolumeStats: async (request) => {
      need(request.volumePath, "volume_path");
      const volume = volumeAt(request.volumeId);
      if (!volume.published.has(request.volumePath)) fail("NOT_FOUND", "the volume is not there");
      const total = volume.sizeBytes;
      return {
        usage: [{ total, used: 0n, available: total, unit: VolumeUsage_Unit.BYTES }],
        volumeCondition: condition,
      };
    },
    nodeExpandVolume: async (request) => {
      need(request.volumePath, "volume_path");
      const volume = volumeAt(request.volumeId);
      if (!volume.published.has(request.volumePath)) fail("NOT_FOUND", "the volume is not there");
      return { capacityBytes: volume.sizeBytes };
    },
  };

  const services = [
    Service.CONTROLLER_SERVICE,
    Service.GROUP_CONTROLLER_SERVICE,
    Service.SNAPSHOT_METADATA_SERVICE,
    Service.VOLUME_ACCESSIBILITY_CONSTRAINTS,
  ];
  const nameOf = (type: number) => Object.entries(Service).find(([, value]) => value === type)?.[0] ?? "";
  const expansions = (["ONLINE", "OFFLINE"] as const).filter((name) => has(`VOLUME_EXPANSION_${name}`));
  return {
    identity: {
      getPluginInfo: async () => ({ name: "fake.csi.longshore.dev", vendorVersion: "1.0.0" }),
      getPluginCapabilities: async () => ({
        capabilities: [
          ...services
            .filter((type) => has(nameOf(type)))
            .map((type) => ({ type: { case: "service" as const, value: { type } } })),
          ...expansions.map((name) => ({
            type: { case: "volumeExpansion" as const, value: { type: VolumeExpansion[name] } },
          })),
        ],
      }),
      probe: async () => ({ ready: true }),
    },
    ...(has("CONTROLLER_SERVICE") ? { controller: withoutUndeclared(controller, without) } : {}),
    ...(has("GROUP_CONTROLLER_SERVICE") ? { groupController } : {}),
    ...(has("SNAPSHOT_METADATA_SERVICE") ? { snapshotMetadata } : {}),
    ...(has("NODE_SERVICE") ? { node: withoutUndeclared(node, without) } : {}),
  };
}

/** Which calls a capability stands for. */
const callsOf: Readonly<Record<string, readonly string[]>> = {
  CREATE_DELETE_VOLUME: ["createVolume", "deleteVolume"],
  PUBLISH_UNPUBLISH_VOLUME: ["controllerPublishVolume", "controllerUnpublishVolume"],
  LIST_VOLUMES: ["listVolumes"],
  GET_CAPACITY: ["getCapacity"],
  CREATE_DELETE_SNAPSHOT: ["createSnapshot", "deleteSnapshot"],
  LIST_SNAPSHOTS: ["listSnapshots"],
  GET_SNAPSHOT: ["getSnapshot"],
  EXPAND_VOLUME: ["controllerExpandVolume", "nodeExpandVolume"],
  GET_VOLUME: ["controllerGetVolume"],
  MODIFY_VOLUME: ["controllerModifyVolume"],
  STAGE_UNSTAGE_VOLUME: ["nodeStageVolume", "nodeUnstageVolume"],
  GET_VOLUME_STATS: ["nodeGetVolumeStats"],
};

function withoutUndeclared<T extends object>(service: T, without: ReadonlySet<string>): T {
  const gone = new Set([...without].flatMap((name) => callsOf[name] ?? []));
  return Object.fromEntries(Object.entries(service).filter(([name]) => !gone.has(name))) as T;
}
