/** A controller under a lease, or alone. */
import type { ControllerEnv } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import type { kubeFlags, leaderElectionFlags } from "./common-flags.ts";
import { leaderHealth } from "./controller-sidecars.ts";
import type { FlagValues } from "./flag-table.ts";
import { connectKube, leasePolicy, type Shell, type Started } from "./sidecar-process.ts";

/** What is started. */
interface ElectedController {
  /** Names it in health answers, such as `migration-controller`. */
  readonly name: string;
  readonly lease: string;
  start(env: ControllerEnv): Component;
}

type Values = FlagValues<typeof kubeFlags> &
  FlagValues<typeof leaderElectionFlags> & {
    readonly "feature-gates": { readonly ReleaseLeaderElectionOnExit: boolean };
  };

/** Starts the controller as its flags say; losing the lease ends the process. */
export async function startElected(
  shell: Shell,
  values: Values,
  { name, lease, start }: ElectedController,
): Promise<Started> {
  const { sharedInformers, startUnderLease } = await import("@longshore/kube");
  const access = await connectKube(shell, values);
  const env = { ...shell.env, kube: access.kube };
  const policy = leasePolicy(values, access, values["feature-gates"].ReleaseLeaderElectionOnExit);
  if (policy === undefined) {
    const controller = start(env);
    return { failed: new Promise(() => {}), stop: () => controller.stop() };
  }
  const informers = sharedInformers(env);
  shell.own(informers);
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<Error>((resolve) => {
    fail = resolve;
  });
  const election = startUnderLease(env, policy, {
    lease,
    serve: async (kube, _term, scope) => {
      scope.own(start({ ...env, kube, informers }));
    },
    onLost: () => fail(new Error(`the ${name} lost its lease`)),
    onFailed: (cause) => fail(new Error(`the ${name} failed`, { cause })),
  });
  shell.routes.set("/healthz/leader-election", async () => {
    const state = { isLeader: election.isLeader(), overdueMs: election.overdueMs() };
    return leaderHealth(new Map([[name, state]]));
  });
  return { failed, stop: () => election.stop() };
}
