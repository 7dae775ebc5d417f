/** The configuration of a process inside a pod: its service account (Kubernetes documentation, "Accessing the Kubernetes API from a Pod"). */
import { type ClusterConfig, ConfigError, type ConfigHost, rereadCredential } from "./cluster-config.ts";
import { bearer } from "./kubeconfig.ts";

const DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Reads the service account's files; the token is read again as it is rotated.
 * @param environment the process's variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT
 * @throws ConfigError where this is no pod
 */
export async function inClusterConfig(
  host: Pick<ConfigHost, "readFile">,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ClusterConfig> {
  const { KUBERNETES_SERVICE_HOST: address, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!address || !port) {
    throw new ConfigError(
      "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; name a kubeconfig instead",
    );
  }
  const read = async (name: string) => {
    const text = await host.readFile(`${DIRECTORY}/${name}`);
    if (text === undefined) {
      throw new ConfigError(`${DIRECTORY}/${name} does not exist: does the pod mount its service account?`);
    }
    return text;
  };
  // A missing mount is reported here, not by the first request.
  await read("token");
  const namespace = (await host.readFile(`${DIRECTORY}/namespace`))?.trim();
  return {
    server: `https://${address.includes(":") ? `[${address}]` : address}:${port}`,
    ca: await read("ca.crt"),
    ...(namespace === undefined ? {} : { namespace }),
    credentials: rereadCredential(async () => ({ authorization: bearer(await read("token")) })),
  };
}
