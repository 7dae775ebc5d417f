/** Operations on who leads: a leader is stopped for longer than its lease lasts, and goes on beside the one that came after it. */
import { resources } from "@longshore/kube";
import type { InProcessCluster } from "@longshore/local";
import type { Operation } from "./operators.ts";

/** The election of the controller managers. */
const lease = "longshore-controller-manager";
/** How long a lease lasts, in milliseconds, and as long again for the other to take it. */
const leaseMs = 30_000;

/** As by SIGSTOP, or on a machine that stands still. */
export const leaderPaused: Operation = (operators, { ms, happens }) => {
  const { cluster } = operators.env;
  const leader = leaderOf(cluster);
  if (leader === undefined || !cluster.isRunning(leader)) return;
  if (!happens(`${leader}, which leads, is stopped for ${leaseMs + ms} ms`)) return;
  const goOn = operators.env.pause(leader);
  operators.later(leaseMs + ms, async () => goOn());
};

/** The controller manager that leads, as the lease says. */
export function leaderOf(cluster: Pick<InProcessCluster, "objects">): string | undefined {
  const holder = cluster.objects(resources.leases).find(({ metadata }) => metadata.name === lease)
    ?.spec?.holderIdentity;
  return holder === "" ? undefined : (holder ?? undefined);
}
