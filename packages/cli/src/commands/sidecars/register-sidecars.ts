/** The verbs `longshore run attacher` and so on: sidecars of a CSI driver, each a process. */
import type { Command } from "commander";
import { registerClusterDriverRegistrar } from "./register-cluster-driver-registrar.ts";
import { registerLivenessProbe } from "./register-liveness-probe.ts";
import { registerNodeDriverRegistrar } from "./register-node-driver-registrar.ts";
import { registerSnapshotController } from "./register-snapshot-controller.ts";
import { controllerSidecarNames, registerAlone, registerTogether } from "./together-options.ts";

/** Adds the verbs. */
export function registerSidecars(run: Command): void {
  registerTogether(run);
  for (const name of controllerSidecarNames) registerAlone(run, name);
  registerSnapshotController(run);
  registerNodeDriverRegistrar(run);
  registerClusterDriverRegistrar(run);
  registerLivenessProbe(run);
}
