/** `longshore driver …`: what the author of a CSI driver works with. Each verb has a file of its own. */
import type { Command } from "commander";
import { registerDriverCheck } from "./register-driver-check.ts";
import { registerDriverDeploy } from "./register-driver-deploy.ts";
import { registerDriverQualify } from "./register-driver-qualify.ts";

/** Adds the verb with those below it. */
export function registerDriverCommand(program: Command): void {
  const driver = program.command("driver").description("check, qualify and deploy a CSI driver");
  registerDriverCheck(driver);
  registerDriverQualify(driver);
  registerDriverDeploy(driver);
}
