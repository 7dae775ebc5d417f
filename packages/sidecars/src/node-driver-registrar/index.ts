export {
  type Registrar,
  type RegistrarEnv,
  type RegistrarOptions,
  RegistrationError,
  startNodeDriverRegistrar,
  unsupportedPlatform,
} from "./registrar.ts";
export { registrationProbe } from "./registration-file.ts";
