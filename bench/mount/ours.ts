/** What is shipped, in this process, as clients of a server elsewhere. */
import { type HttpKubeClient, resources } from "@longshore/kube";
import type { RuntimeEnv } from "@longshore/runtime";
import { createInProcessCluster } from "../../packages/local/src/cluster/in-process-cluster.ts";
import { bootstrap, nodesReady } from "../../packages/local/src/cluster/process-cluster.ts";
import { clusterConfig } from "../../packages/local/src/layout/cluster-config.ts";
import { createBound, createPod, driver, type Mounted, namespace, signal } from "./objects.ts";
import { type NotedRequest, notingClient } from "./requests.ts";

/** The running components. */
export interface Ours {
  /** Mounts a volume for a pod of this name, and takes it away. */
  mountOne(name: string): Promise<Mounted>;
  /** The requests that were answered since this was called before. */
  takeRequests(): readonly NotedRequest[];
  stop(): Promise<void>;
}

/** Starts them all; resolves when the node has its driver. `isMounting` is called at the beginning and at the end of each mount. */
export async function startOurs(
  env: RuntimeEnv,
  kube: HttpKubeClient,
  isMounting: (is: boolean) => void,
): Promise<Ours> {
  const config = clusterConfig(1, "unprivileged", { attachLimit: 1000, withoutInTreePlugins: true });
  await bootstrap(kube, config, signal);
  let requests: NotedRequest[] = [];
  const published = new Map<string, () => void>();
  const cluster = await createInProcessCluster(env, {
    config,
    programs: () => ({
      wait: ({ signal: ended }) =>
        new Promise((resolve) => ended.addEventListener("abort", () => resolve(0), { once: true })),
    }),
    isolate: (by, seams) => ({
      ...seams,
      kube: notingClient(kube, by, (request) => requests.push(request)),
    }),
    onDriverCall(_place, { rpc, code, volumeId = "" }) {
      if (rpc === "NodePublishVolume" && code === "OK") published.get(volumeId)?.();
    },
  });
  await nodesReady(env, { kube, config }, signal);
  const controller = cluster.csi.connect(`/${driver}.sock`).controller;
  const until = async (holds: () => Promise<boolean>) => {
    while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  const isGone = async (name: string) => {
    const { items } = await kube.list(resources.volumeAttachments, { signal });
    const pod = await kube.get(resources.pods, { namespace, name }, { signal });
    return pod === undefined && items.length === 0;
  };
  const nodeName = config.nodes[0]?.name ?? "";
  return {
    async mountOne(name) {
      const volumeHandle = await createBound(kube, controller, name);
      const mounted = new Promise<number>((resolve) =>
        published.set(volumeHandle, () => {
          isMounting(false);
          resolve(performance.now());
        }),
      );
      isMounting(true);
      await createPod(kube, name, nodeName);
      const beganMs = performance.now();
      const tookMs = (await mounted) - beganMs;
      await kube.delete(resources.pods, { namespace, name }, { signal });
      await until(() => isGone(name));
      return { beganMs, tookMs };
    },
    takeRequests() {
      const taken = requests;
      requests = [];
      return taken;
    },
    stop: () => cluster.stop(),
  };
}
