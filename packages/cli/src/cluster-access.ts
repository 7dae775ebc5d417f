/** A client of the cluster that `--kubeconfig` and `--context` name, for commands that look at any cluster. */
import { resolve } from "node:path";
import type { ClusterConfig, KubeEnv } from "@longshore/kube";
import { UsageError } from "./exit.ts";
import { kubeconfigOf } from "./kubeconfig.ts";

/** The flags that name a cluster. */
export interface ClusterFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
}

/** Runs `work` with a client of the cluster. @param otherwise how else the command can be used, for the error @throws UsageError when no cluster is named */
export async function withCluster<T>(
  flags: ClusterFlags,
  otherwise: string,
  work: (env: KubeEnv) => Promise<T>,
): Promise<T> {
  const { createHttpClient } = await import("@longshore/kube");
  const { createLogger, noMeter, systemClock, systemRandom } = await import("@longshore/runtime");
  const logger = createLogger({ format: "human", level: "warn" });
  const runtime = { clock: systemClock, random: systemRandom, logger, meter: noMeter };
  const kube = createHttpClient(runtime, await configOf(flags, otherwise));
  try {
    return await work({ ...runtime, kube });
  } catch (error) {
    throw await namingAccount(flags, error);
  } finally {
    await kube.close();
  }
}

/** The error; of one that says no more than that the server does not know the account, one that says where the account is named. */
export async function namingAccount(flags: ClusterFlags, error: unknown): Promise<unknown> {
  const { KubeApiError } = await import("@longshore/kube");
  if (!(error instanceof KubeApiError) || error.code !== 401) return error;
  const path = flags.kubeconfig ?? process.env.KUBECONFIG ?? "";
  const where = path === "" ? "the account of this pod" : `the user of ${path}`;
  return new Error(
    `the API server does not accept the credentials of ${where}: renew them, or name another context with --context`,
    { cause: error },
  );
}

/** The configuration of the cluster that the flags name. @throws UsageError when none is named */
export async function configOf(flags: ClusterFlags, otherwise: string): Promise<ClusterConfig> {
  const path = flags.kubeconfig ?? process.env.KUBECONFIG ?? "";
  if (path !== "") {
    return kubeconfigOf(flags.kubeconfig === undefined ? "KUBECONFIG" : "--kubeconfig", {
      path: resolve(path),
      environment: process.env as Record<string, string>,
      ...(flags.context === undefined ? {} : { context: flags.context }),
    });
  }
  if (process.env.KUBERNETES_SERVICE_HOST === undefined) {
    throw new UsageError(`--kubeconfig: which cluster? Give a file, set KUBECONFIG, ${otherwise}`);
  }
  const { inClusterConfig } = await import("@longshore/kube");
  const { kernelHost } = await import("@longshore/runtime");
  return inClusterConfig(kernelHost(), process.env as Record<string, string>);
}
