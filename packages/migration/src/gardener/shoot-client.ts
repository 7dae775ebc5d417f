/**
 * A client of a shoot's API server, from the kubeconfig that Gardener keeps in the seed.
 * Source: docs/behaviour/migration-controllers.md A2, "NewClientForShoot".
 */
import {
  createHttpClient,
  type HttpKubeClient,
  type KubeEnv,
  loadKubeconfig,
  resources,
} from "@longshore/kube";

/** Makes a client of the shoot whose Cluster has this name; the caller closes it. */
export type NewClientForShoot = (clusterName: string, signal: AbortSignal) => Promise<HttpKubeClient>;

/** Secrets with a kubeconfig, best first: by the name inside the seed, then by the shoot's domain. */
const secretNames = ["gardener-internal", "gardener"] as const;

/** The kubeconfig of a shoot is missing or cannot be used. */
export class ShootAccessError extends Error {
  override readonly name = "ShootAccessError";
}

/**
 * A factory of clients that reads the Secret each time, since it rotates. A kubeconfig that names files or programs is
 * refused: the right to write the Secret is not a right to read files or start programs here.
 *
 * @returns a function that rejects with `ShootAccessError` or `ConfigError`
 */
export function newClientForShoot(env: KubeEnv): NewClientForShoot {
  return async (namespace, signal) => {
    for (const name of secretNames) {
      const secret = await env.kube.get(resources.secrets, { namespace, name }, { signal });
      const encoded = secret?.data?.kubeconfig;
      if (encoded === undefined) continue;
      const text = Buffer.from(encoded, "base64").toString("utf8");
      const config = await loadKubeconfig(noFiles, { path: `/Secret/${namespace}/${name}/kubeconfig`, text });
      return createHttpClient(env, config);
    }
    throw new ShootAccessError(
      `namespace ${namespace}: neither Secret ${secretNames.join(" nor ")} has a "kubeconfig": ` +
        "reconcile the Shoot, so that it is made again",
    );
  };
}

const noFiles = {
  readFile: (path: string) => refuse(`names the file ${path}`),
  runProgram: () => refuse("names a program"),
};

function refuse(what: string): Promise<never> {
  const remedy = "give certificates and token inline";
  return Promise.reject(
    new ShootAccessError(`the shoot's kubeconfig ${what}, which is not allowed: ${remedy}`),
  );
}
