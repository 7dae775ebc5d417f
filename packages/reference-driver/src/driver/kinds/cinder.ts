/** `cinder.csi.openstack.org`. */
import { driverKindOf, instanceIds } from "./driver-kind.ts";

/** OpenStack Cinder. It ignores parameters that it does not know. */
export const cinder = driverKindOf("cinder", {
  topologyKey: "topology.cinder.csi.openstack.org/zone",
  ...instanceIds,
});
