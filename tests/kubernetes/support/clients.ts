/** Clients of a test's control plane: our own, over HTTPS, from a kubeconfig, as the user that the test chooses. */
import { setMaxListeners } from "node:events";
import { readFile } from "node:fs/promises";
import {
  createHttpClient,
  type HttpKubeClient,
  type KubeObject,
  loadKubeconfig,
  type Resource,
  refOf,
  resources,
  type Stored,
} from "@longshore/kube";
import { noMeter, type RuntimeEnv, silentLogger, systemClock, systemRandom } from "@longshore/runtime";
import type { ControlPlane } from "./control-plane.ts";

/** The machine's clock and entropy, no logs. */
export const realEnv: RuntimeEnv = {
  clock: systemClock,
  random: systemRandom,
  logger: silentLogger,
  meter: noMeter,
};

/** A signal that never aborts, for the calls of tests. */
export const signal: AbortSignal = new AbortController().signal;
setMaxListeners(0, signal);

/**
 * A client as one of the control plane's users; default the administrator.
 * @param url where the API server is reached instead, e.g. through a link that a test can cut
 */
export async function connectAs(
  kubernetes: Pick<ControlPlane, "url" | "kubeconfigFor">,
  user = "admin",
  url = kubernetes.url,
): Promise<HttpKubeClient> {
  const host = {
    readFile: (path: string) => readFile(path, "utf8"),
    runProgram: () => Promise.reject(new Error("the kubeconfig of a test names no program")),
  };
  const path = await kubernetes.kubeconfigFor(user);
  return createHttpClient(realEnv, { ...(await loadKubeconfig(host, { path })), server: url });
}

/** Creates the object, and writes its status where it has one. */
export async function createWithStatus<T extends KubeObject>(
  kube: HttpKubeClient,
  resource: Resource<T>,
  object: T,
): Promise<Stored<T>> {
  const created = await kube.create(resource, object, { signal });
  const { status } = object as { readonly status?: unknown };
  if (status === undefined) return created;
  return kube.patch(
    resource,
    refOf(created),
    { type: "merge", body: { status } },
    { signal, subresource: "status" },
  );
}

/** A client with a token of the account, as its pod would have. */
export async function connectAsAccount(
  kubernetes: ControlPlane,
  admin: HttpKubeClient,
  account: { readonly name: string; readonly namespace: string },
): Promise<HttpKubeClient> {
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  const answer = await admin.createSubresource(
    resources.serviceAccounts,
    account,
    "token",
    request as KubeObject,
    {
      signal,
    },
  );
  const { token } = (answer as unknown as { readonly status: { readonly token: string } }).status;
  const config = {
    clusters: [
      { name: "c", cluster: { server: kubernetes.url, "certificate-authority": kubernetes.caPath } },
    ],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  const host = {
    readFile: (path: string) => readFile(path, "utf8"),
    runProgram: () => Promise.reject(new Error("no program")),
  };
  const path = `${kubernetes.directory}/account.kubeconfig`; // Only names the text.
  return createHttpClient(realEnv, await loadKubeconfig(host, { path, text: JSON.stringify(config) }));
}
