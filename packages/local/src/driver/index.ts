/** The reference CSI driver. */
export { type DriverKind, driverKind, driverKinds } from "./driver-kinds.ts";
export {
  createReferenceDriver,
  type ReferenceDriverEnv,
  type ReferenceDriverOptions,
} from "./reference-driver.ts";
