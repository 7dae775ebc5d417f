export {
  type Registrar,
  type RegistrarEnv,
  type RegistrarOptions,
  RegistrationError,
  startNodeDriverRegistrar,
} from "./registrar.ts";
