/** What tests against real Kubernetes share. */

export { connectAs, createWithStatus, realEnv, signal } from "./clients.ts";
export {
  type ApiAnswer,
  type ControllerManagerOptions,
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
  type TestUser,
} from "./control-plane.ts";
export { appenderProgram, createTestNode, nodeUser, recordNode, type TestNode } from "./node.ts";
export { eventually } from "./processes.ts";
export { type Machine, machine, type Provider, region, startProvider, zone } from "./provider.ts";
export { grant } from "./rights.ts";
