/** A small CSI driver over a cloud of disks in memory, for tests of the sidecars. The cloud outlives its driver. */
import {
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  type CsiServices,
  CsiStatusError,
  type GrpcCode,
  PluginCapability_Service_Type as Service,
} from "@longshore/csi";

/** One disk. */
export interface FakeDisk {
  readonly name: string;
  readonly bytes: bigint;
  readonly zone: string;
}

/** How the next call of an RPC ends. */
export type Ending =
  /** Answers with this status, having done nothing. */
  | { readonly code: GrpcCode }
  /** Does its work and never answers. */
  | { readonly lost: true };

/** The disks, and what was asked of them. */
export class FakeCloud {
  readonly disks = new Map<string, FakeDisk>();
  /** `volumeId/nodeId`. */
  readonly attached = new Set<string>();
  readonly calls: string[] = [];
  readonly #endings = new Map<string, Ending[]>();
  #made = 0;

  /** The next calls of `rpc` end like this, one after the other. */
  next(rpc: string, ...endings: readonly Ending[]): void {
    this.#endings.set(rpc, [...(this.#endings.get(rpc) ?? []), ...endings]);
  }

  /** From now on calls end well. */
  heal(): void {
    this.#endings.clear();
  }

  /** Runs one call. */
  async run<T>(rpc: string, detail: string, work: () => T): Promise<T> {
    this.calls.push(`${rpc} ${detail}`);
    const ending = this.#endings.get(rpc)?.shift();
    if (ending !== undefined && "code" in ending) throw new CsiStatusError(ending.code, "as the test asked");
    const answer = work();
    return ending === undefined ? answer : new Promise<T>(() => {});
  }

  /** Makes a disk, or finds the one of this name. */
  create(name: string, bytes: bigint, zone: string): { readonly id: string; readonly disk: FakeDisk } {
    for (const [id, disk] of this.disks) if (disk.name === name) return { id, disk };
    const id = `vol-${String(++this.#made).padStart(4, "0")}`;
    const disk = { name, bytes, zone };
    this.disks.set(id, disk);
    return { id, disk };
  }
}

/** What the driver says of itself. */
export interface FakeDriverOptions {
  readonly name?: string;
  readonly topologyKey?: string;
  /** Left out: it attaches nothing. */
  readonly attaches?: boolean;
  readonly listsVolumes?: boolean;
}

/** The driver's services over the cloud. */
export function fakeDriver(cloud: FakeCloud, options: FakeDriverOptions = {}): CsiServices {
  const {
    name = "ebs.csi.aws.com",
    topologyKey = "topology.ebs.csi.aws.com/zone",
    attaches = true,
  } = options;
  const rpcs = [
    ControllerRpc.CREATE_DELETE_VOLUME,
    ...(attaches ? [ControllerRpc.PUBLISH_UNPUBLISH_VOLUME] : []),
    ...(options.listsVolumes ? [ControllerRpc.LIST_VOLUMES, ControllerRpc.LIST_VOLUMES_PUBLISHED_NODES] : []),
  ];
  const services = [Service.CONTROLLER_SERVICE, Service.VOLUME_ACCESSIBILITY_CONSTRAINTS];
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
      createVolume: (request) =>
        cloud.run("CreateVolume", request.name, () => {
          const zone = request.accessibilityRequirements?.preferred[0]?.segments[topologyKey] ?? "us-east-1a";
          const { id, disk } = cloud.create(request.name, request.capacityRange?.requiredBytes ?? 1n, zone);
          return {
            volume: {
              volumeId: id,
              capacityBytes: disk.bytes,
              accessibleTopology: [{ segments: { [topologyKey]: disk.zone } }],
            },
          };
        }),
      deleteVolume: (request) =>
        cloud.run("DeleteVolume", request.volumeId, () => {
          if ([...cloud.attached].some((pair) => pair.startsWith(`${request.volumeId}/`))) {
            throw new CsiStatusError("FAILED_PRECONDITION", "volume is attached");
          }
          cloud.disks.delete(request.volumeId);
          return {};
        }),
      controllerPublishVolume: (request) =>
        cloud.run("ControllerPublishVolume", `${request.volumeId}/${request.nodeId}`, () => {
          cloud.attached.add(`${request.volumeId}/${request.nodeId}`);
          return { publishContext: { devicePath: "/dev/xvdba" } };
        }),
      controllerUnpublishVolume: (request) =>
        cloud.run("ControllerUnpublishVolume", `${request.volumeId}/${request.nodeId}`, () => {
          cloud.attached.delete(`${request.volumeId}/${request.nodeId}`);
          return {};
        }),
      listVolumes: async () => ({
        entries: [...cloud.disks.keys()].map((volumeId) => ({
          volume: { volumeId },
          status: {
            publishedNodeIds: [...cloud.attached]
              .filter((pair) => pair.startsWith(`${volumeId}/`))
              .map((pair) => pair.slice(volumeId.length + 1)),
          },
        })),
      }),
    },
  };
}
