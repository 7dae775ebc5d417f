/** What runs beside a CSI driver: attacher, provisioner, registrar. Each is one component on the seams. */
export { type AttacherOptions, startAttacher } from "./attacher/index.ts";
export type { SidecarEnv } from "./common/env.ts";
export {
  type Registrar,
  type RegistrarEnv,
  type RegistrarOptions,
  RegistrationError,
  startNodeDriverRegistrar,
} from "./node-driver-registrar/index.ts";
export { type ProvisionerOptions, startProvisioner } from "./provisioner/index.ts";
