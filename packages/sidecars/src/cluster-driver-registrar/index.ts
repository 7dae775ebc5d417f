export {
  ClusterDriverRegistrarOptionError,
  type ClusterDriverRegistrarOptions,
  serveCsiDriver,
  startClusterDriverRegistrar,
} from "./cluster-driver-registrar.ts";
