/** What tests against real Kubernetes share. */

export { connectAs, connectAsAccount, createWithStatus, realEnv, signal } from "./clients.ts";
export {
  type ApiAnswer,
  type ControllerManagerOptions,
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
  type TestUser,
} from "./control-plane.ts";
export { type History, record } from "./history.ts";
export { type Link, openLink } from "./link.ts";
export { appenderProgram, createTestNode, nodeUser, type TestNode } from "./node.ts";
export { eventually } from "./processes.ts";
export { type Machine, machine, type Provider, region, startProvider, zone } from "./provider.ts";
export { bindRole, grant } from "./rights.ts";
