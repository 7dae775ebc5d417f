/** Whether a driver makes group snapshots. */
import { GroupControllerServiceCapability_RPC_Type as GroupRpc } from "@longshore/csi";
import type { KubeEnv } from "@longshore/kube";
import { type BackoffPolicy, backoffMs } from "@longshore/runtime";
import type { Driver } from "../common/sidecar-env.ts";

/** Asks the driver, again and again until it answers. */
export async function makesGroups(
  env: KubeEnv,
  driver: Driver,
  options: { readonly timeoutMs: number; readonly backoff: BackoffPolicy },
  signal: AbortSignal,
): Promise<boolean> {
  if (!driver.capabilities.plugin.has("GROUP_CONTROLLER_SERVICE")) return false;
  for (let failures = 1; ; failures++) {
    try {
      const { groupController } = driver.csi;
      const { timeoutMs } = options;
      const answer = await groupController.groupControllerGetCapabilities({}, { signal, timeoutMs });
      return answer.capabilities.some(
        ({ type }) =>
          type.case === "rpc" && type.value.type === GroupRpc.CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
      );
    } catch (error) {
      signal.throwIfAborted();
      const retryInMs = backoffMs(options.backoff, failures, env.random);
      env.logger.warn("the driver does not say whether it makes group snapshots", { error, retryInMs });
      await env.clock.sleep(retryInMs, signal);
    }
  }
}
