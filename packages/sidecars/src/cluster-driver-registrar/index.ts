export {
  ClusterDriverRegistrarOptionError,
  type ClusterDriverRegistrarOptions,
  startClusterDriverRegistrar,
} from "./cluster-driver-registrar.ts";
