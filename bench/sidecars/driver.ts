/**
 * A CSI driver that does nothing, fast, in a process of its own: `driver.mjs SOCKET`. What is measured is the sidecars.
 * Says `ready` on its standard output.
 */
import {
  grpcListener,
  ControllerServiceCapability_RPC_Type as Rpc,
  PluginCapability_Service_Type as Service,
} from "@longshore/csi";
import { silentLogger } from "@longshore/runtime";

const rpcs = [Rpc.CREATE_DELETE_VOLUME, Rpc.PUBLISH_UNPUBLISH_VOLUME, Rpc.EXPAND_VOLUME];
const capabilities = rpcs.map((type) => ({ type: { case: "rpc" as const, value: { type } } }));

await grpcListener({ logger: silentLogger }).serve(process.argv[2] ?? "", {
  identity: {
    getPluginInfo: async () => ({ name: "bench.csi.example.com", vendorVersion: "1" }),
    probe: async () => ({ ready: true }),
    getPluginCapabilities: async () => ({
      capabilities: [{ type: { case: "service", value: { type: Service.CONTROLLER_SERVICE } } }],
    }),
  },
  controller: {
    controllerGetCapabilities: async () => ({ capabilities }),
    createVolume: async ({ name, capacityRange }) => ({
      volume: { volumeId: name, capacityBytes: capacityRange?.requiredBytes ?? 0n },
    }),
    deleteVolume: async () => ({}),
    controllerPublishVolume: async () => ({ publishContext: { devicePath: "/dev/xvdba" } }),
    controllerUnpublishVolume: async () => ({}),
    controllerExpandVolume: async ({ capacityRange }) => ({
      capacityBytes: capacityRange?.requiredBytes ?? 0n,
      nodeExpansionRequired: false,
    }),
  },
  node: { nodeGetCapabilities: async () => ({ capabilities: [] }) },
});
console.log("ready");
