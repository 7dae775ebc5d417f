/** The identity service. All instances of the driver answer alike, wherever they run (docs/behaviour/csi-spec-notes.md 4). */
import {
  type CsiServices,
  PluginCapability_Service_Type as Service,
  PluginCapability_VolumeExpansion_Type as VolumeExpansion,
} from "@longshore/csi";
import type { DriverKind } from "./kinds/driver-kind.ts";

const vendorVersion = "0.1.0";

/** Builds the service. */
export function identityService(driverName: string, kind: DriverKind): CsiServices["identity"] {
  const services = [
    Service.CONTROLLER_SERVICE,
    ...(kind.isShare ? [] : [Service.GROUP_CONTROLLER_SERVICE, Service.SNAPSHOT_METADATA_SERVICE]),
    ...(kind.topologyKey === undefined ? [] : [Service.VOLUME_ACCESSIBILITY_CONSTRAINTS]),
  ];
  return {
    getPluginInfo: async () => ({ name: driverName, vendorVersion }),
    getPluginCapabilities: async () => ({
      capabilities: [
        ...services.map((type) => ({ type: { case: "service" as const, value: { type } } })),
        { type: { case: "volumeExpansion" as const, value: { type: VolumeExpansion.ONLINE } } },
      ],
    }),
    probe: async () => ({ ready: true }),
  };
}
