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
  kubernetes: ControlPlane,
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
