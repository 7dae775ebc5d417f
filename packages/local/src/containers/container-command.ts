/** What a container, and a program beside it, is started with. Real form. */
import { constants, userInfo } from "node:os";
import { type ContainerConfig, expandVariables, mountVariable } from "./pod-runtime.ts";

/** The environment of the container. @param isolated it has a root of its own, with its volumes at their mount paths */
export function environmentOf(config: ContainerConfig, isolated: boolean): Record<string, string> {
  const env: Record<string, string> = {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOSTNAME: config.podName,
    HOME: homeDirectory(),
  };
  for (const mount of config.mounts) {
    // Without a root of its own the program finds a volume only where the node has it.
    env[mountVariable(mount.volumeName)] = isolated ? mount.mountPath : mount.hostPath;
  }
  return Object.assign(env, config.env);
}

/** Program and arguments of the container, with the values of variables. */
export function argvOf(config: ContainerConfig, env: Readonly<Record<string, string>>): string[] {
  return config.argv.map((part) => expandVariables(part, env));
}

/** The exit code of a program that a signal has ended: 128 and its number, as shells report it. */
export function exitCodeOfSignal(signal: NodeJS.Signals | null): number {
  return signal === null ? 255 : 128 + constants.signals[signal];
}

/** As container runtimes set it: that of the user in the machine's list of users, not in who starts the cluster's environment. */
function homeDirectory(): string {
  try {
    return userInfo().homedir;
  } catch {
    return "/"; // The user is not in the list.
  }
}
