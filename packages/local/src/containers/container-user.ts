/**
 * Users of containers, by the machine's list of users: containers have the machine's files. Real form. Node cannot give a process
 * further groups; `setpriv` of util-linux can.
 */
import { readFileSync } from "node:fs";
import type { ContainerConfig } from "./pod-runtime.ts";

/** The user that this process runs as. */
export function processUser(): { readonly uid: number; readonly gid: number } {
  return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
}

/** The home directory of the user: `/` where it is not in the list, as container runtimes have it. */
export function homeOf(uid: number): string {
  return listedUser(uid)?.home ?? "/";
}

/** The command that runs `command` as the container's user. It has to be run inside of the container's root. */
export function asContainerUser(
  { user, noNewPrivileges }: Pick<ContainerConfig, "user" | "noNewPrivileges">,
  command: readonly string[],
): readonly string[] {
  const options: string[] = [];
  if (user !== undefined) {
    const { uid, groups } = user;
    const gid = user.gid ?? listedUser(uid)?.gid ?? 0;
    const further = groups.length === 0 ? "--clear-groups" : `--groups=${groups.join(",")}`;
    options.push(`--reuid=${uid}`, `--regid=${gid}`, further);
  }
  if (noNewPrivileges === true) options.push("--no-new-privs");
  return options.length === 0 ? command : ["setpriv", ...options, "--", ...command];
}

/** Source: passwd(5). */
function listedUser(uid: number): { readonly gid: number; readonly home: string } | undefined {
  let list: string;
  try {
    list = readFileSync("/etc/passwd", "utf8");
  } catch {
    return undefined; // The machine has none.
  }
  const fields = list.split("\n").map((line) => line.split(":"));
  const [, , , gid, , home = ""] = fields.find((of) => of[2] === String(uid)) ?? [];
  return gid === undefined ? undefined : { gid: Number(gid), home: home === "" ? "/" : home };
}
