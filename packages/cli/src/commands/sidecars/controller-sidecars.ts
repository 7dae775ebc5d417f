/** Runs sidecars of the controller side as a process: one alone, or several that share driver and caches. */
import type { LeaseState, ProvisionerOptions, SidecarOptions, SidecarsOptions } from "@longshore/sidecars";
import { UsageError } from "../../exit.ts";
import { type FlagsOf, loggerInFlags } from "../../field-flags.ts";
import type { ReadFlags } from "./add-flag-command.ts";
import {
  driverFlags,
  httpFlags,
  kubeFlags,
  leaderElectionFlags,
  processFlags,
  retryFlags,
} from "./common-flags.ts";
import type { FlagValues } from "./flag-table.ts";
import type { Answer } from "./serve-http.ts";
import { connectDriver, connectKube, leasePolicy, type Shell, type Started } from "./sidecar-process.ts";

/** What they all have. */
export const controllerFlags = {
  ...driverFlags,
  ...kubeFlags,
  ...leaderElectionFlags,
  ...retryFlags,
  ...httpFlags,
  ...processFlags,
} as const;

/** Values of {@link controllerFlags}. */
export type ControllerValues = FlagValues<typeof controllerFlags>;

/** The flags and variables of options that logs name. */
const loggedFields = {
  capacity: "--enable-capacity",
  namespace: "NAMESPACE",
  ownerRefLevel: "--capacity-ownerref-level",
  podName: "POD_NAME",
} satisfies FlagsOf<ProvisionerOptions & CapacityOptions>;

type CapacityOptions = NonNullable<ProvisionerOptions["capacity"]>;

/** The delays that the flags ask for. */
export function retryBackoff(values: ControllerValues) {
  return { initialMs: values["retry-interval-start"], maximumMs: values["retry-interval-max"] };
}

/**
 * Starts the sidecars that have options, on one connection to the driver and one client; they wait for the driver in the
 * background. Under leader election, `/healthz/leader-election` says whether a leader hangs.
 *
 * @throws UsageError for an address of the driver that is none, or times of leases that do not go together
 */
export async function startControllerSidecars(
  shell: Shell,
  flags: ReadFlags<typeof controllerFlags>,
  sidecars: Partial<SidecarOptions>,
  how: Pick<SidecarsOptions, "unsupported" | "leaseLost"> & { readonly releaseOnStop: boolean },
): Promise<Started> {
  const { startSidecars } = await import("@longshore/sidecars");
  // First, as it says at once that there is no driver yet.
  const csi = await connectDriver(shell, flags);
  const access = await connectKube(shell, flags.values);
  const lease = leasePolicy(flags.values, access, how.releaseOnStop);
  const { unsupported = "leaveOut", leaseLost = "compete" } = how;
  const isOfNode = sidecars.provisioner?.nodeDeployment ?? sidecars.snapshotter?.nodeName;
  if (lease !== undefined && isOfNode !== undefined) {
    shell.env.logger.warn("with --node-deployment and --leader-election only the leader's node is served");
  }
  const running = startSidecars(
    { ...shell.env, logger: loggerInFlags(shell.env.logger, loggedFields), kube: access.kube, csi },
    { sidecars, unsupported, leaseLost, ...(lease === undefined ? {} : { lease }) },
  );
  if (lease !== undefined)
    shell.routes.set("/healthz/leader-election", async () => leaderHealth(running.leases()));
  return running;
}

/** How long after its lease has lapsed a leader may still be at work before it counts as hanging (docs/behaviour/sidecars.md 1). */
const overdueMaxMs = 20_000;

/** Whether no leader hangs beyond its lease. */
export function leaderHealth(leases: ReadonlyMap<string, LeaseState>): Answer {
  const overdue = [...leases].filter(([, { overdueMs }]) => overdueMs > overdueMaxMs);
  if (overdue.length === 0) return { status: 200, body: "ok" };
  const names = overdue.map(([name]) => name).join(", ");
  return { status: 500, body: `the lease lapsed long ago and work has not ended: ${names}` };
}

/** The node this process runs on. @throws UsageError when it is not specified */
export function nodeName(): string {
  const { NODE_NAME: name = "" } = process.env;
  if (name === "") {
    throw new UsageError(
      "--node-deployment needs the variable NODE_NAME: set it from spec.nodeName of the pod",
    );
  }
  return name;
}
