/** Paths as the Host seam takes them: absolute, without `..` and NUL; shared by its three forms. */
import { posix } from "node:path";
import { HostError } from "./host.ts";

/** An empty or a dotted element, or a slash at the end: most paths have none. */
const perhapsNotNormal = /\/(?:\.|\/|$)/;

/** The normalised form of `path`. @throws HostError with EINVAL when it is relative, has `..` or a NUL */
export function checkedPath(operation: string, path: string): string {
  if (
    !path.startsWith("/") ||
    path.includes("\0") ||
    (path.includes("..") && path.split("/").includes(".."))
  ) {
    throw new HostError(operation, path.replaceAll("\0", "\\0"), "EINVAL");
  }
  if (!perhapsNotNormal.test(path)) return path;
  const normal = posix.normalize(path);
  return normal.length > 1 && normal.endsWith("/") ? normal.slice(0, -1) : normal;
}

/** The directory that holds `path`; that of `/` is `/`. */
export function parentOf(path: string): string {
  return posix.dirname(path);
}

/** The last element of `path`. */
export function baseOf(path: string): string {
  return posix.basename(path);
}

/** `name` in the directory `path`. */
export function childOf(path: string, name: string): string {
  return path === "/" ? `/${name}` : `${path}/${name}`;
}

/** Whether `path` is `prefix` or below it. */
export function isAtOrBelow(path: string, prefix: string): boolean {
  return prefix === "/" || path === prefix || path.startsWith(`${prefix}/`);
}

/** It is there where the kernel runs with SELinux (selinuxfs). */
export const enforceFile = "/sys/fs/selinux/enforce";
