/** One crossing at a time on a cluster, by a lock that the kernel holds for its process. Real form. */
import { lockFile, PathLockedError } from "@longshore/runtime";
import type { ClusterLayout } from "../layout/cluster-layout.ts";

/** Another process carries the cluster just now. */
export class CrossingInProgressError extends Error {
  override readonly name = "CrossingInProgressError";
}

/** Locks the cluster for a crossing of this process; returns its release. @throws CrossingInProgressError */
export function lockCrossing(layout: Pick<ClusterLayout, "dir">): () => void {
  try {
    return lockFile(`${layout.dir}/crossing.lock`).release;
  } catch (cause) {
    if (!(cause instanceof PathLockedError)) throw cause;
    throw new CrossingInProgressError(
      `${cause.holder ?? "another process"} carries the cluster in ${layout.dir} just now: wait for its end, or end it with Ctrl-C, and run this again`,
      { cause },
    );
  }
}
