/** The verbs of distributions: controllers with which they drive the crossing, each a process. */
import type { Command } from "commander";
import { registerFeatureGateOperator } from "./register-feature-gate-operator.ts";
import { registerMigrationController } from "./register-migration-controller.ts";

/** Adds the verbs. */
export function registerDistributions(run: Command): void {
  registerMigrationController(run);
  registerFeatureGateOperator(run);
}
