/** Converts what Node and the mount programs report into a {@link HostError}; no other module reads errnos. */
import { HostError } from "./host.ts";

/** Runs one step of an operation; its failure becomes a HostError with the system's code. */
export async function hostStep<T>(operation: string, path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw toHostError(operation, path, error);
  }
}

/** `error` as a HostError of this operation; one that is already is left as it is. */
export function toHostError(operation: string, path: string, error: unknown): HostError {
  if (error instanceof HostError) return error;
  return new HostError(operation, path, errnoOf(error) ?? "EIO", error);
}

/** The system's code of a Node error, e.g. `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === "string" && /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}

/** Whether the failure says that there is nothing at the path. */
export function isMissing(error: unknown): boolean {
  const code = error instanceof HostError ? error.code : errnoOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Texts of mount(8), umount(8), losetup(8), resize2fs(8) and of the C library; all under LC_ALL=C. */
const textCodes: readonly (readonly [RegExp, string])[] = [
  [/not mounted|not a mountpoint|no mount point specified/i, "EINVAL"],
  [/busy|already mounted/i, "EBUSY"],
  [/no space left|not enough space/i, "ENOSPC"],
  [/file too large/i, "EFBIG"],
  [/permission denied|not permitted|must be superuser|only root/i, "EPERM"],
  [/operation not supported/i, "ENOTSUP"],
  [/read-only file ?system|write-protected/i, "EROFS"],
  [/is not a directory|not a directory/i, "ENOTDIR"],
  [/unknown filesystem type|no such device\b/i, "ENODEV"],
  [/wrong fs type|bad superblock|bad option|invalid argument/i, "EINVAL"],
  [/does not exist|no such file|cannot find|can't find/i, "ENOENT"],
  [/structure needs cleaning/i, "EUCLEAN"],
  [/input\/output error|can't read superblock/i, "EIO"],
];

/** The code that fits the error output of a program; EIO when none is recognised. */
export function codeOfText(text: string): string {
  return textCodes.find(([pattern]) => pattern.test(text))?.[1] ?? "EIO";
}
