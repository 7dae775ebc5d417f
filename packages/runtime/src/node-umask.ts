/** The umask of this process, for a moment. Real form. */
import { isMainThread } from "node:worker_threads";

/**
 * Runs `work`, which must not wait, under the umask: files that it makes and programs that it starts have it. A worker
 * thread cannot set it, as it is the whole process's: there `work` runs as it is.
 */
export function underUmask<T>(mask: number, work: () => T): T {
  if (!isMainThread) return work();
  const before = process.umask(mask);
  try {
    return work();
  } finally {
    process.umask(before);
  }
}
