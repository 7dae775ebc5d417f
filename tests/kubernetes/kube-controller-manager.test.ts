/** Kubernetes' own volume controllers, with migration on, drive our node agent, attacher and provisioner. */
import { gates, volumeLife } from "./support/volume-life.ts";

volumeLife("Kubernetes' controllers", {
  controlPlane: {
    kcmFeatureGates: gates,
    controllerManager: true,
  },
});
