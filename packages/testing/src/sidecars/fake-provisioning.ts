/** What a driver can do besides plain volumes, for tests of the provisioner: sources, room, its node, odd answers. */
import {
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  type CreateVolumeRequest,
  type CsiServices,
  CsiStatusError,
} from "@longshore/csi";
import type { FakeCloud } from "./fake-driver.ts";

/** Such a driver, and what was asked of it. */
export class FakeProvisioning {
  /** Every CreateVolume, in order. */
  readonly requests: CreateVolumeRequest[] = [];
  /** Free bytes by zone. */
  readonly room = new Map<string, bigint>();
  /** Zones of GetCapacity, in order; empty: everywhere. */
  readonly asked: string[] = [];
  /** Answers do not name the source that was copied. */
  forgetsSource = false;
  /** Bytes that a new volume is said to have. */
  answeredBytes: bigint | undefined;
  /** Zone that NodeGetInfo returns. */
  nodeZone = "us-east-1a";
  /** Secrets without which calls are refused. */
  neededSecret: string | undefined;
  /** What GetCapacity says of the largest volume. */
  maximumBytes: bigint | undefined;
  /** Attributes of new volumes. */
  volumeContext: Readonly<Record<string, string>> = {};

  /** Extends a fake driver. */
  readonly extend = (services: CsiServices, cloud: FakeCloud): CsiServices => {
    const { controller } = services;
    const topologyKey = "topology.ebs.csi.aws.com/zone";
    return {
      ...services,
      controller: {
        ...controller,
        controllerGetCapabilities: async (request, signal) => {
          const before = await controller?.controllerGetCapabilities?.(request, signal);
          const more = [
            ControllerRpc.CREATE_DELETE_SNAPSHOT,
            ControllerRpc.CLONE_VOLUME,
            ControllerRpc.GET_CAPACITY,
            ControllerRpc.MODIFY_VOLUME,
            ControllerRpc.SINGLE_NODE_MULTI_WRITER,
          ].map((type) => ({ type: { case: "rpc" as const, value: { type } } }));
          return { capabilities: [...(before?.capabilities ?? []), ...more] };
        },
        createVolume: async (request, signal) => {
          this.requests.push(request);
          this.#check(request.secrets);
          const answer = await controller?.createVolume?.(request, signal);
          const source = request.volumeContentSource;
          const volume = {
            ...answer?.volume,
            volumeContext: { ...this.volumeContext },
            ...(this.answeredBytes === undefined ? {} : { capacityBytes: this.answeredBytes }),
            ...(source === undefined || this.forgetsSource ? {} : { contentSource: source }),
          };
          return { volume };
        },
        deleteVolume: async (request, signal) => {
          this.#check(request.secrets);
          return (await controller?.deleteVolume?.(request, signal)) ?? {};
        },
        getCapacity: async ({ accessibleTopology }) => {
          const zone = accessibleTopology?.segments[topologyKey] ?? "";
          this.asked.push(zone);
          return cloud.run("GetCapacity", zone, () => ({
            availableCapacity: this.room.get(zone) ?? 0n,
            ...(this.maximumBytes === undefined ? {} : { maximumVolumeSize: this.maximumBytes }),
          }));
        },
      },
      node: {
        nodeGetInfo: async () => ({
          nodeId: "i-node",
          accessibleTopology: { segments: { [topologyKey]: this.nodeZone } },
        }),
      },
    };
  };

  #check(secrets: Readonly<Record<string, string>>): void {
    if (this.neededSecret === undefined || secrets[this.neededSecret] !== undefined) return;
    throw new CsiStatusError("INVALID_ARGUMENT", "secrets are missing");
  }
}
