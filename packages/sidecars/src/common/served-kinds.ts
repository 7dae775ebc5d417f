/** Kinds that a server may not have: custom resources that are yet to be installed, kinds of a newer Kubernetes. */
import type { KubeEnv, KubeObject, Resource } from "@longshore/kube";
import { type BackoffPolicy, backoffMs } from "@longshore/runtime";

/** What an administrator does where the kinds of snapshots are missing. */
export const snapshotKindsRemedy =
  "install the CustomResourceDefinitions of snapshot.storage.k8s.io, which come with @longshore/storage (crds/)";
/** The same for group snapshots. */
export const groupKindsRemedy =
  "install the CustomResourceDefinitions of groupsnapshot.storage.k8s.io, which come with @longshore/storage (crds/)";

/** Delays between looks; discovery itself asks the server no more than every 30 s for what was not there. */
const lookBackoff: BackoffPolicy = { initialMs: 1000, maximumMs: 30_000 };

/**
 * Waits until the server has all of these kinds, and says so in the log: at first what is missing, later that it came.
 * @param remedy what an administrator can do about a missing kind
 */
export async function whenServed(
  env: KubeEnv,
  kinds: readonly Resource<KubeObject>[],
  remedy: string,
  signal: AbortSignal,
): Promise<void> {
  for (let looks = 1; ; looks++) {
    const missing = await missingKinds(env, kinds, signal);
    if (missing?.length === 0) {
      if (looks > 1) env.logger.info("the kinds that were missing are served now");
      return;
    }
    if (looks === 1 && missing !== undefined) {
      env.logger.warn("waiting for kinds that the API server does not have", { missing, remedy });
    }
    await env.clock.sleep(backoffMs(lookBackoff, looks, env.random), signal);
  }
}

/** Those that are not served; undefined while the server does not answer. */
async function missingKinds(
  env: KubeEnv,
  kinds: readonly Resource<KubeObject>[],
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  try {
    const missing: string[] = [];
    for (const kind of kinds) {
      if ((await env.kube.servedVersion(kind, { signal })) === undefined)
        missing.push(`${kind.plural}.${kind.group}`);
    }
    return missing;
  } catch (error) {
    signal.throwIfAborted();
    env.logger.warn("cannot ask which kinds the API server has", { error });
    return undefined;
  }
}
