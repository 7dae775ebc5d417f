/** What tests against real Kubernetes share. */
export {
  type ApiAnswer,
  type ControllerManagerOptions,
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
  type TestUser,
} from "./control-plane.ts";
export { eventually } from "./processes.ts";
