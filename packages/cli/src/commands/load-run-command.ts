/** `longshore run …`: one component in the foreground. Which verbs there are below it is known without loading them. */
import type { Command } from "commander";
import { componentVerbs } from "./component-verbs.ts";
import { distributionVerbs } from "./distributions/distribution-verbs.ts";
import { sidecarVerbs } from "./sidecars/sidecar-verbs.ts";

/**
 * Loads the verb with those below it.
 * @param below the one that is wanted, where it is known: a sidecar must not carry an API server with it
 */
export async function loadRunCommand(below?: string): Promise<(program: Command) => void> {
  const isSidecar = sidecarVerbs.some((verb) => verb === below);
  const isDriver = below === "reference-driver";
  const isDistribution = distributionVerbs.some((verb) => verb === below);
  // Anything else, such as `help` or a word that is wrong, is answered by what knows them all.
  const isComponent = componentVerbs.some((verb) => verb === below);
  // All of them in one process start before whatever else there is: they carry no verb but their own.
  const together = below === "sidecars" ? await import("./sidecars/together-options.ts") : undefined;
  const sidecars =
    isComponent || isDistribution || together !== undefined
      ? undefined
      : await import("./sidecars/register-sidecars.ts");
  const distributions =
    isSidecar || isComponent ? undefined : await import("./distributions/register-distributions.ts");
  const components =
    isSidecar || isDistribution || isDriver ? undefined : await import("./register-components.ts");
  const driver =
    isSidecar || isDistribution || (isComponent && !isDriver)
      ? undefined
      : await import("./register-reference-driver.ts");
  return (program) => {
    const run = program.command("run").description("run one component in the foreground");
    components?.registerComponents(run);
    driver?.registerReferenceDriver(run);
    together?.registerTogether(run);
    sidecars?.registerSidecars(run);
    distributions?.registerDistributions(run);
  };
}
