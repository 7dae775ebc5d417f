/** ControllerPublishVolume and ControllerUnpublishVolume, of drivers that attach so. */
import {
  ControllerPublishVolumeRequestSchema,
  ControllerUnpublishVolumeRequestSchema,
  type CsiServices,
} from "@longshore/csi";
import type { ProviderCloud } from "../disk-cloud/index.ts";
import { checkCapability, isForReaders, useOf } from "./check-capability.ts";
import type { DriverKind } from "./kinds/driver-kind.ts";
import type { PendingCalls } from "./pending-calls.ts";
import type { RequestChecks } from "./request-checks.ts";
import type { VolumeIndex } from "./volume-index.ts";
import { lowerCased } from "./volume-request.ts";

/** What the handlers work with. */
export interface PublishContext {
  readonly cloud: ProviderCloud;
  readonly kind: DriverKind;
  readonly rpc: RequestChecks;
  readonly index: VolumeIndex;
  readonly pending: PendingCalls;
}

type Controller = NonNullable<CsiServices["controller"]>;
type PublishRpc = "controllerPublishVolume" | "controllerUnpublishVolume";

/** The handlers. */
export function publishHandlers(context: PublishContext): Required<Pick<Controller, PublishRpc>> {
  const { cloud, kind, rpc, index, pending } = context;
  const usesInstanceIds = kind.nodeNameOf === undefined;
  return {
    controllerPublishVolume: rpc(
      ControllerPublishVolumeRequestSchema,
      ["volume_id", "node_id", "volume_capability"],
      ({ volumeId, nodeId, volumeCapability, readonly, volumeContext }, signal) =>
        pending.alone(`volume ${volumeId}`, async () => {
          const capability = checkCapability(volumeCapability, kind);
          const diskId = kind.usesDiskIds
            ? volumeId
            : (await index.existing(volumeId, signal, volumeContext)).id;
          const instanceId = usesInstanceIds ? nodeId : (await index.instance(nodeId, signal)).instanceId;
          const readOnly = readonly || (kind.attachesReaders && isForReaders(capability));
          const caching = kind.cachingOf?.(lowerCased(volumeContext));
          const how = { use: useOf(capability), readOnly, ...(caching === undefined ? {} : { caching }) };
          const { devicePath } = await cloud.attachDisk(diskId, instanceId, signal, how);
          return { publishContext: { devicePath } };
        }),
    ),

    controllerUnpublishVolume: rpc(
      ControllerUnpublishVolumeRequestSchema,
      ["volume_id"],
      ({ volumeId, nodeId }, signal) =>
        pending.alone(`volume ${volumeId}`, async () => {
          if (kind.usesDiskIds && usesInstanceIds && nodeId !== "") {
            await cloud.detachDisk(volumeId, nodeId, signal);
            return {};
          }
          const disk = await index.find(volumeId, signal);
          if (disk === undefined) return {};
          const instances = await cloud.listInstances(signal);
          for (const { instanceId } of disk.attachments) {
            const instance = instances.find((i) => i.instanceId === instanceId);
            const isMeant = nodeId === "" || (instance !== undefined && kind.nodeIdOf(instance) === nodeId);
            if (isMeant) await cloud.detachDisk(disk.id, instanceId, signal);
          }
          return {};
        }),
    ),
  };
}
