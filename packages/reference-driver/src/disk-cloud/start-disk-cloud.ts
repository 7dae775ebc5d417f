/** The disk cloud of a process of its own: its state is locked before it is read, and for as long as it is served. */
import { type Component, lockDirectory, type PathLock, PathLockedError } from "@longshore/runtime";
import {
  createDiskCloud,
  type DiskCloudEnv,
  type DiskCloudOptions,
  type DiskCloudService,
} from "./disk-cloud.ts";
import { CloudSocketError, serveDiskCloud } from "./http-server.ts";

/** Opens the cloud and serves it. @throws CloudSocketError when a live cloud has the state, or as `serveDiskCloud` */
export async function startDiskCloud(
  env: DiskCloudEnv,
  options: DiskCloudOptions,
  socketPath: string,
): Promise<{ readonly service: DiskCloudService; readonly component: Component }> {
  await env.host.makeDirectory(options.stateDir);
  const lock = lockState(options.stateDir);
  try {
    const service = await createDiskCloud(env, options);
    const server = await serveDiskCloud(service, socketPath);
    // Last, also after a failure: a successor must not read the state while this one may write it.
    const stop = () => server.stop().finally(() => lock.release());
    return { service, component: { stop } };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function lockState(stateDir: string): PathLock {
  try {
    return lockDirectory(stateDir);
  } catch (cause) {
    if (!(cause instanceof PathLockedError)) throw cause;
    throw new CloudSocketError(
      `a disk cloud is already running in ${stateDir}: stop it or use another directory`,
      { cause },
    );
  }
}
