/** A client whose requests are noted, with who made them and how long they took. */
import type { KubeClient } from "@longshore/kube";

/** A request that was answered. Times are those of `performance.now`, in milliseconds. */
export interface NotedRequest {
  readonly by: string;
  /** e.g. `patch nodes status` */
  readonly what: string;
  readonly beganMs: number;
  readonly endedMs: number;
}

const noted = ["get", "list", "create", "update", "updateStatus", "patch", "delete", "createSubresource"];

/** The client, whose requests are handed to `note` when they are answered. */
export function notingClient(
  kube: KubeClient,
  by: string,
  note: (request: NotedRequest) => void,
): KubeClient {
  return new Proxy(kube, {
    get(target, name: keyof KubeClient) {
      const method = target[name] as (...args: unknown[]) => Promise<unknown>;
      if (!noted.includes(name)) return method.bind(target);
      return async (resource: { readonly plural: string }, ...rest: unknown[]) => {
        const beganMs = performance.now();
        try {
          return await method.call(target, resource, ...rest);
        } finally {
          const { subresource = "" } = (rest.at(-1) ?? {}) as { readonly subresource?: string };
          const what = `${name} ${resource.plural} ${subresource}`.trim();
          note({ by, what, beganMs, endedMs: performance.now() });
        }
      };
    },
  });
}
