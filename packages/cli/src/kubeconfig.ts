/** Reads the kubeconfig that a flag or a variable names. */
import type { ClusterConfig, KubeconfigSource } from "@longshore/kube";

/** The configuration. @throws ConfigError whose message begins with `named`: the flag or variable that names the file */
export async function kubeconfigOf(named: string, source: KubeconfigSource): Promise<ClusterConfig> {
  const { ConfigError, loadKubeconfig } = await import("@longshore/kube");
  const { kernelHost } = await import("@longshore/runtime");
  try {
    return await loadKubeconfig(kernelHost(), source);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(`${named}: ${error.message}`, { cause: error.cause });
  }
}
