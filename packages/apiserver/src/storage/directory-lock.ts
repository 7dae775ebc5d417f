/** Keeps two servers from one data directory, with a lock that the kernel holds for this process. */
import { lockDirectoryWithFile, PathLockedError, PathLockLostError } from "@longshore/runtime/basics";
import { StoreError } from "./store.ts";

/** The lock of a data directory. */
export interface DirectoryLock {
  /** @throws StoreError when the lock is lost: then another server may have the directory */
  check(): void;
  release(): void;
}

/** Takes the lock. @throws StoreError when a living process holds it */
export function takeDirectoryLock(directory: string): DirectoryLock {
  try {
    const lock = lockDirectoryWithFile(directory, "lock");
    return { check: () => checked(directory, lock.check), release: lock.release };
  } catch (cause) {
    if (!(cause instanceof PathLockedError)) throw cause;
    const holder = cause.holder ?? "another process";
    throw new StoreError(
      `the data directory ${directory} is in use by ${holder}: stop that process or choose another directory`,
      { cause },
    );
  }
}

function checked(directory: string, check: () => void): void {
  try {
    check();
  } catch (cause) {
    if (!(cause instanceof PathLockLostError)) throw cause;
    throw new StoreError(
      `the lock of the data directory ${directory} is lost, and nothing is written there any more: see that no other server uses it, then start the server again`,
      { cause },
    );
  }
}
