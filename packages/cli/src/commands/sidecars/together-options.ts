/**
 * `longshore run sidecars`: the flags of all controller sidecars in one table. What they share stands once; what several
 * have with a meaning of its own for each is prefixed with the sidecar's name, and without prefix sets all of them.
 */
import type { SidecarName, SidecarOptions } from "@longshore/sidecars";
import type { Command } from "commander";
import { addFlagCommand, type ReadFlags, resolved } from "./add-flag-command.ts";
import { attacherFlags, attacherOptions } from "./attacher-options.ts";
import { type ControllerValues, controllerFlags, startControllerSidecars } from "./controller-sidecars.ts";
import { type Flag, type FlagTable, type FlagValues, type Gate, gates, toggle } from "./flag-table.ts";
import { healthMonitorFlags, healthMonitorOptions } from "./health-monitor-options.ts";
import { provisionerFlags, provisionerOptions } from "./provisioner-options.ts";
import { resizerFlags, resizerOptions } from "./resizer-options.ts";
import { runSidecarProcess } from "./sidecar-process.ts";
import { snapshotterFlags, snapshotterOptions } from "./snapshotter-options.ts";

/** One sidecar: its flags, and what their values mean. */
export interface FlaggedSidecar {
  readonly flags: FlagTable & { readonly "feature-gates": ReturnType<typeof gates> };
  readonly summary: string;
  /** Its options, in the form that its name says. */
  options(values: never, common: ControllerValues): SidecarOptions[SidecarName];
}

/** Those that can share a process. */
export const controllerSidecars = {
  provisioner: {
    flags: provisionerFlags,
    summary: "make volumes for claims and delete released ones",
    options: provisionerOptions,
  },
  attacher: {
    flags: attacherFlags,
    summary: "attach volumes to nodes as VolumeAttachments ask",
    options: attacherOptions,
  },
  resizer: {
    flags: resizerFlags,
    summary: "expand and modify volumes as their claims ask",
    options: resizerOptions,
  },
  snapshotter: {
    flags: snapshotterFlags,
    summary: "make and delete the snapshots of VolumeSnapshotContents",
    options: snapshotterOptions,
  },
  "health-monitor": {
    flags: healthMonitorFlags,
    summary: "report the health of volumes in events on their claims",
    options: healthMonitorOptions,
  },
} as const satisfies { readonly [N in SidecarName]: FlaggedSidecar };

/** Their names. */
export const controllerSidecarNames = Object.keys(controllerSidecars) as readonly SidecarName[];

/** Flags that carry the sidecar's name as a prefix, also where only one sidecar has a flag of this name. */
const prefixedFlags: ReadonlySet<string> = new Set([
  "timeout",
  "worker-threads",
  "workers",
  "resync",
  "resync-period",
]);

/** Where each flag of each sidecar is in the common table. */
function commonName(sidecar: SidecarName, flag: string): string {
  return prefixedFlags.has(flag) ? `${sidecar}-${flag}` : flag;
}

/** All flags of `longshore run sidecars`. */
export const togetherFlags: FlagTable & typeof controllerFlags = { ...combined(), ...controllerFlags };

/** The sidecars that have a flag of this name. */
function sidecarsWithFlag(flag: string): string {
  return controllerSidecarNames
    .filter((name) => Object.hasOwn(controllerSidecars[name].flags, flag))
    .join(", ");
}

function combined(): FlagTable {
  const table: Record<string, Flag<unknown>> = {};
  for (const name of controllerSidecarNames) {
    table[name] = toggle(true, `run the ${name}: ${controllerSidecars[name].summary}`);
  }
  for (const name of controllerSidecarNames) {
    for (const [flagName, flag] of Object.entries<Flag<unknown>>(controllerSidecars[name].flags)) {
      if (flag.deprecated !== undefined || flagName === "feature-gates") continue;
      const at = commonName(name, flagName);
      if (at !== flagName) {
        table[at] = { ...flag, help: `${name}: ${flag.help}` };
        table[flagName] = {
          ...flag,
          default: undefined,
          defaultText: "",
          help: `${sidecarsWithFlag(flagName)}: shared value, unless the flag with the sidecar's prefix is given`,
        };
      } else {
        const present = table[at];
        if (present !== undefined && present.defaultText !== flag.defaultText) {
          throw new Error(`--${at} has another default for the ${name}: prefix it`);
        }
        table[at] ??= flag;
      }
    }
  }
  const known: Record<string, Gate> = {};
  for (const { flags } of Object.values(controllerSidecars))
    Object.assign(known, flags["feature-gates"].known);
  table["feature-gates"] = gates(known);
  return table;
}

/** The options of the sidecars that are to run. */
export function togetherOptions(flags: ReadFlags<typeof togetherFlags>): Partial<SidecarOptions> {
  const values = flags.values as Readonly<Record<string, unknown>>;
  const common = flags.values as unknown as ControllerValues;
  const options: Partial<Record<SidecarName, unknown>> = {};
  for (const name of controllerSidecarNames) {
    if (values[name] !== true) continue;
    const { flags: own, options: optionsOf }: FlaggedSidecar = controllerSidecars[name];
    const given = new Map<string, unknown>();
    // `resolved` takes the defaults of the reference by it.
    if (flags.given.has("compat")) given.set("compat", common.compat);
    for (const flag of Object.keys(own)) {
      // What is said of one counts more than what is said of all.
      const said = [commonName(name, flag), flag].find((at) => flags.given.has(at));
      if (said !== undefined) given.set(flag, values[said]);
    }
    options[name] = optionsOf(resolved(own, given).values as never, common);
  }
  return options as Partial<SidecarOptions>;
}

/** Adds the verb. */
export function registerTogether(run: Command): void {
  addFlagCommand(run, "sidecars", togetherFlags, async (flags) => {
    const gateValues = (flags.values as FlagValues<FlagTable>)["feature-gates"] as Record<string, boolean>;
    await runSidecarProcess("sidecars", togetherFlags, flags, (shell) =>
      startControllerSidecars(
        shell,
        flags as unknown as ReadFlags<typeof controllerFlags>,
        togetherOptions(flags),
        { releaseOnStop: gateValues.ReleaseLeaderElectionOnExit === true },
      ),
    );
  })
    .description("run all controller sidecars of a driver in one process, each under a lease of its own")
    .addHelpText("after", togetherHelp);
}

const togetherHelp = `
A sidecar that the driver has no use for is left out, and the log says why; --NAME=false switches one off.
Leases have the names of the reference sidecars: a replica of these and one of those never both lead.
`;

/** Adds one controller sidecar as a verb of its own. */
export function registerAlone(run: Command, name: SidecarName): void {
  const { flags: own, summary, options: optionsOf }: FlaggedSidecar = controllerSidecars[name];
  const table = { ...own, ...controllerFlags };
  addFlagCommand(run, name, table, async (flags) => {
    const common = flags as unknown as ReadFlags<typeof controllerFlags>;
    const values = flags.values as Readonly<Record<string, unknown>>;
    const options = { [name]: optionsOf(values as never, common.values) } as Partial<SidecarOptions>;
    const gateValues = values["feature-gates"] as Record<string, boolean>;
    await runSidecarProcess(name, table, flags, (shell) =>
      startControllerSidecars(shell, common, options, {
        unsupported: "fail",
        leaseLost: "fail",
        releaseOnStop: gateValues.ReleaseLeaderElectionOnExit === true,
      }),
    );
  }).description(summary);
}
