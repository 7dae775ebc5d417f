/**
 * A CSI driver to start from: a volume is a directory of the node that it was made on.
 *
 *     DIR/ID/volume.json    what was requested, and where it is published: written first, removed last
 *     DIR/ID/data           what pods see
 *
 * Invariants
 *  - An id is made from the name, so a CreateVolume that is repeated, or was cut off, means the same directory.
 *  - Nothing is kept in memory but locks: a call that a crash cut off is brought to its end by repeating it.
 */
import { createHash } from "node:crypto";
import * as csi from "@longshore/csi";
import { type Host, HostError, KeyedLock } from "@longshore/runtime";

/** What the driver is made of. */
export interface DirectoryDriverOptions {
  readonly host: Host;
  /** Where volumes are: an absolute path without links. */
  readonly dir: string;
  readonly name: string;
  readonly nodeId: string;
  /** Every node sees `dir`: a volume can be used on each. */
  readonly shared?: boolean;
}

interface Volume {
  readonly name: string;
  readonly capacityBytes: string;
  readonly parameters: string;
  readonly targets: readonly string[];
}

const { CONTROLLER_SERVICE, VOLUME_ACCESSIBILITY_CONSTRAINTS } = csi.PluginCapability_Service_Type;
const { CREATE_DELETE_VOLUME } = csi.ControllerServiceCapability_RPC_Type;
const { SINGLE_NODE_WRITER, SINGLE_NODE_READER_ONLY } = csi.VolumeCapability_AccessMode_Mode;
const fail = (code: csi.GrpcCode, message: string) => new csi.CsiStatusError(code, message);

/** The services of the driver. */
export function directoryDriver({
  host,
  dir,
  name,
  nodeId,
  shared,
}: DirectoryDriverOptions): csi.CsiServices {
  const topology = shared ? undefined : { segments: { [`topology.${name}/node`]: nodeId } };
  const lock = new KeyedLock();
  const fileOf = (id: string) => `${dir}/${id}/volume.json`;
  const dataOf = (id: string) => `${dir}/${id}/data`;
  const store = (id: string, volume: Volume) => host.writeFileAtomic(fileOf(id), JSON.stringify(volume));
  const find = async (id: string) => {
    const text = isId(id) ? await host.readFile(fileOf(id)) : undefined;
    return text === undefined ? undefined : (JSON.parse(text) as Volume);
  };
  const existing = async (id: string) => {
    const volume = await find(id);
    if (volume === undefined) throw fail("NOT_FOUND", `volume ${id} does not exist`);
    return volume;
  };

  /** A handler that sees valid requests only, one at a time for each volume. */
  const rpc =
    <I extends csi.DescMessage, O>(
      schema: I,
      required: readonly string[],
      handle: (request: csi.MessageShape<I>) => Promise<O>,
    ) =>
    async (request: csi.MessageShape<I>): Promise<O> => {
      csi.checkRequest(schema, request, required);
      const { volumeId, name: asked = "" } = request as { volumeId?: string; name?: string };
      try {
        return await lock.run(volumeId ?? idOf(asked), () => handle(request));
      } catch (error) {
        if (!(error instanceof HostError)) throw error;
        const code = error.code === "ENOSPC" ? "RESOURCE_EXHAUSTED" : "INTERNAL";
        throw new csi.CsiStatusError(code, error.message, { cause: error });
      }
    };

  return {
    identity: {
      getPluginInfo: async () => ({ name, vendorVersion: "1.0.0" }),
      getPluginCapabilities: async () => ({
        capabilities: [CONTROLLER_SERVICE, ...(topology ? [VOLUME_ACCESSIBILITY_CONSTRAINTS] : [])].map(
          (type) => {
            return { type: { case: "service" as const, value: { type } } };
          },
        ),
      }),
      probe: async () => ({ ready: true }),
    },

    controller: {
      controllerGetCapabilities: async () => ({
        capabilities: [{ type: { case: "rpc" as const, value: { type: CREATE_DELETE_VOLUME } } }],
      }),

      createVolume: rpc(csi.CreateVolumeRequestSchema, ["name", "volume_capabilities"], async (request) => {
        csi.checkName(request.name);
        for (const capability of request.volumeCapabilities) checkCapability(capability);
        if (request.volumeContentSource !== undefined || Object.keys(request.mutableParameters).length > 0) {
          throw fail("INVALID_ARGUMENT", "neither copies nor mutable parameters are supported");
        }
        const { requiredBytes = 0n, limitBytes = 0n } = request.capacityRange ?? {};
        if (limitBytes > 0n && limitBytes < requiredBytes) {
          throw fail("INVALID_ARGUMENT", "capacity_range.limit_bytes is below required_bytes");
        }
        const { requisite = [], preferred = [] } = request.accessibilityRequirements ?? {};
        const wanted = requisite.length > 0 ? requisite : preferred;
        const isHere = shared || wanted.some(({ segments }) => segments[`topology.${name}/node`] === nodeId);
        if (wanted.length > 0 && !isHere) {
          throw fail("RESOURCE_EXHAUSTED", `volumes are made on ${nodeId}, which is not asked for`);
        }
        const id = idOf(request.name);
        const capacityBytes = (requiredBytes || limitBytes || 1024n ** 3n).toString();
        const parameters = JSON.stringify(Object.entries(request.parameters).sort());
        const present = await find(id);
        if (
          present !== undefined &&
          (present.capacityBytes !== capacityBytes || present.parameters !== parameters)
        ) {
          throw fail("ALREADY_EXISTS", `volume ${id} has this name, but another size or other parameters`);
        }
        await host.makeDirectory(`${dir}/${id}`);
        if (present === undefined)
          await store(id, { name: request.name, capacityBytes, parameters, targets: [] });
        await host.makeDirectory(dataOf(id), 0o777);
        const accessibleTopology = topology ? [topology] : [];
        return { volume: { volumeId: id, capacityBytes: BigInt(capacityBytes), accessibleTopology } };
      }),

      deleteVolume: rpc(csi.DeleteVolumeRequestSchema, ["volume_id"], async ({ volumeId }) => {
        for (const target of (await find(volumeId))?.targets ?? []) {
          if (await host.isMountPoint(target))
            throw fail("FAILED_PRECONDITION", `it is published at ${target}`);
        }
        if (!isId(volumeId)) return {};
        await host.removeTree(dataOf(volumeId));
        await host.removeTree(`${dir}/${volumeId}`);
        return {};
      }),

      validateVolumeCapabilities: rpc(
        csi.ValidateVolumeCapabilitiesRequestSchema,
        ["volume_id", "volume_capabilities"],
        async ({ volumeId, volumeCapabilities, volumeContext, parameters }) => {
          await existing(volumeId);
          const message = volumeCapabilities.map(unsupported).find((reason) => reason !== undefined);
          return message ? { message } : { confirmed: { volumeCapabilities, volumeContext, parameters } };
        },
      ),
    },

    node: {
      nodeGetCapabilities: async () => ({}),
      nodeGetInfo: async () => ({ nodeId, ...(topology && { accessibleTopology: topology }) }),

      nodePublishVolume: rpc(
        csi.NodePublishVolumeRequestSchema,
        ["volume_id", "target_path", "volume_capability"],
        async ({ volumeId, targetPath, volumeCapability, readonly }) => {
          const target = csi.checkAbsolutePath("target_path", targetPath);
          const mode = checkCapability(volumeCapability).accessMode?.mode;
          const readOnly = readonly || mode === SINGLE_NODE_READER_ONLY;
          const volume = await existing(volumeId);
          const present = (await host.listMounts(target)).find((mount) => mount.target === target);
          if (present?.source === dataOf(volumeId) && present.readOnly === readOnly) return {};
          if (present !== undefined) throw fail("ALREADY_EXISTS", `${target} has something else mounted`);
          await store(volumeId, { ...volume, targets: [...new Set([...volume.targets, target])] });
          await host.makeDirectory(target, 0o750);
          await host.bindMount(dataOf(volumeId), target, { readOnly });
          return {};
        },
      ),

      nodeUnpublishVolume: rpc(
        csi.NodeUnpublishVolumeRequestSchema,
        ["volume_id", "target_path"],
        async ({ volumeId, targetPath }) => {
          const target = csi.checkAbsolutePath("target_path", targetPath);
          while (await host.isMountPoint(target)) await host.unmount(target);
          await host.removeDirectory(target);
          const volume = await find(volumeId);
          if (volume?.targets.includes(target) === true) {
            await store(volumeId, { ...volume, targets: volume.targets.filter((other) => other !== target) });
          }
          return {};
        },
      ),
    },
  };
}

const idOf = (name: string) => createHash("sha256").update(name).digest("hex").slice(0, 32);
const isId = (text: string) => /^[0-9a-f]{32}$/.test(text);

function unsupported({ accessType, accessMode }: csi.VolumeCapability): string | undefined {
  if (accessType.case !== "mount") return "volumes can only be mounted";
  if (accessType.value.mountFlags.length > 0) return "mount_flags are not supported";
  const isKnown = accessMode?.mode === SINGLE_NODE_WRITER || accessMode?.mode === SINGLE_NODE_READER_ONLY;
  return isKnown ? undefined : "a volume is on one node: use SINGLE_NODE_WRITER or SINGLE_NODE_READER_ONLY";
}

function checkCapability(capability: csi.VolumeCapability | undefined): csi.VolumeCapability {
  const reason = capability && unsupported(capability);
  if (capability !== undefined && reason === undefined) return capability;
  throw fail("INVALID_ARGUMENT", reason ?? "volume_capability is required");
}
