/** Runs the operator on the cluster of `$KUBECONFIG`: the real forms of the seams, and one leader among replicas. */
import { hostname } from "node:os";
import { createHttpClient, loadKubeconfig, startUnderLease } from "@longshore/kube";
import { createLogger, kernelHost, noMeter, systemClock, systemRandom } from "@longshore/runtime";
import { startWorkspaceOperator } from "./operator.ts";
import { workspaces } from "./workspace.ts";

const logger = createLogger({ format: "human", level: "info" });
const base = { clock: systemClock, random: systemRandom, logger, meter: noMeter };
const config = await loadKubeconfig(kernelHost(), { path: process.env.KUBECONFIG ?? "" });
const kube = createHttpClient(base, config);
const env = { ...base, kube };
// Without its kind there is nothing to do: one sentence, and the container is started again until it is there.
if ((await kube.servedVersion(workspaces, { signal: AbortSignal.timeout(30_000) })) === undefined) {
  logger.error("the cluster has no Workspaces: kubectl apply -f examples/operator/crd.yaml");
  process.exit(1);
}
// Replicas on one host may share its name, and each is process 1 of its container.
const identity = `${hostname()}_${systemRandom.uuid("replica")}`;
const replica = { namespace: "default", identity, releaseOnStop: true, recordEvents: true };
const election = startUnderLease(env, replica, {
  lease: "workspace-operator",
  // The client of the term: what it writes, it writes as the leader or not at all.
  serve: async (fenced, _term, scope) => scope.own(startWorkspaceOperator({ ...env, kube: fenced })),
  onLost: () => logger.warn("the lease was lost"),
  onFailed: (error) => logger.error("the operator failed", { error }),
});
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => void election.stop().then(() => kube.close()));
}
