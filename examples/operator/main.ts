/** Runs the operator on the cluster of `$KUBECONFIG`: the real forms of the seams, and one leader among replicas. */
import { createHttpClient, loadKubeconfig, startLeaderElection } from "@longshore/kube";
import { createLogger, kernelHost, noMeter, systemClock, systemRandom } from "@longshore/runtime";
import { startWorkspaceOperator } from "./operator.ts";

const env = {
  clock: systemClock,
  random: systemRandom,
  logger: createLogger({ format: "human", level: "info" }),
  meter: noMeter,
};
const config = await loadKubeconfig(kernelHost(), { path: process.env.KUBECONFIG ?? "" });
const kube = createHttpClient(env, config);
const election = startLeaderElection(
  { ...env, kube },
  {
    name: "workspace-operator",
    namespace: "default",
    identity: `${process.pid}`,
    async lead(term, fenced) {
      // What this client writes, it writes as the leader or not at all.
      const operator = startWorkspaceOperator({ ...env, kube: fenced });
      await new Promise((resolve) => term.addEventListener("abort", resolve, { once: true }));
      await operator.stop();
    },
  },
);
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => void election.stop().then(() => kube.close()));
}
