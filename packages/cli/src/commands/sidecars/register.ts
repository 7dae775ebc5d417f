/** The verbs `longshore run attacher` and so on: sidecars of a CSI driver, each a process. */
import type { SidecarName, SidecarOptions } from "@longshore/sidecars";
import type { Command } from "commander";
import { attacherFlags, attacherOptions } from "./attacher.ts";
import { type ControllerValues, controllerFlags, startControllerSidecars } from "./controller-sidecars.ts";
import { addFlagCommand } from "./flag-command.ts";
import type { Flag, FlagTable, FlagValues } from "./flag-table.ts";
import { registerNodeDriverRegistrar } from "./node-driver-registrar.ts";
import { provisionerFlags, provisionerOptions } from "./provisioner.ts";
import { runSidecarProcess } from "./sidecar-process.ts";

/** Adds the verbs. */
export function registerSidecars(run: Command): void {
  addControllerSidecar(run, "provisioner", provisionerFlags, provisionerOptions).description(
    "make volumes for claims and delete released ones",
  );
  addControllerSidecar(run, "attacher", attacherFlags, attacherOptions).description(
    "attach volumes to nodes as VolumeAttachments ask",
  );
  registerNodeDriverRegistrar(run);
}

type OwnTable = FlagTable & {
  readonly "feature-gates": Flag<{ readonly ReleaseLeaderElectionOnExit: boolean }>;
};

function addControllerSidecar<N extends SidecarName, T extends OwnTable>(
  run: Command,
  name: N,
  own: T,
  optionsOf: (values: FlagValues<T>, common: ControllerValues) => SidecarOptions[N],
): Command {
  const table = { ...own, ...controllerFlags };
  return addFlagCommand(run, name, table, async (flags) => {
    // The table holds both, so its values are those of both.
    const common = flags as unknown as { values: ControllerValues; given: ReadonlySet<string> };
    const values = flags.values as unknown as FlagValues<T>;
    const options = { [name]: optionsOf(values, common.values) } as Partial<SidecarOptions>;
    const { ReleaseLeaderElectionOnExit: releaseOnStop } = (values as FlagValues<OwnTable>)["feature-gates"];
    await runSidecarProcess(name, table, flags, (shell) =>
      startControllerSidecars(shell, common, options, {
        unsupported: "fail",
        leaseLost: "fail",
        releaseOnStop,
      }),
    );
  });
}
