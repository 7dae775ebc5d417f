/** The controllers that bind and protect volumes, and on demand that of StatefulSets, for a server that a kubectl uses. */
import { readFileSync } from "node:fs";
import { createHttpClient, loadKubeconfig, sharedInformers } from "@longshore/kube";
import { featureGates, stopAll } from "@longshore/runtime";
import {
  csiPlugin,
  startPersistentVolumeController,
  startProtectionControllers,
  volumeGates,
} from "@longshore/volumes";
import { realEnv } from "../../../packages/apiserver/src/testing/serve.ts";
import { startStatefulSetController } from "../../../packages/local/src/workloads/stateful-set/stateful-set-controller.ts";

/** Starts them, without an in-tree plugin, as in Kubernetes 1.31 and newer. Returns what stops them. */
export async function startVolumeControllers(
  kubeconfig: string,
  { statefulSets = false }: { readonly statefulSets?: boolean } = {},
): Promise<() => Promise<void>> {
  const host = {
    readFile: async (path: string) => readFileSync(path, "utf8"),
    runProgram: () => Promise.reject(new Error("the kubeconfig of a test names no program")),
  };
  const kube = createHttpClient(realEnv, await loadKubeconfig(host, { path: kubeconfig }));
  const env = { ...realEnv, kube };
  const informers = sharedInformers(env);
  const controllers = [
    ...(statefulSets ? [startStatefulSetController({ ...env, informers })] : []),
    startPersistentVolumeController({ ...env, plugins: [csiPlugin()] }, { gates: featureGates(volumeGates) }),
    startProtectionControllers(env),
  ];
  return async () => {
    await stopAll(controllers);
    await informers.stop();
    await kube.close();
  };
}
