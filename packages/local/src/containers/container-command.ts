/** What a container, and a program beside it, is started with. Real form. */
import { constants } from "node:os";
import { homeOf, processUser } from "./container-user.ts";
import { type ContainerConfig, expandVariables, mountVariable } from "./pod-runtime.ts";

/** The environment of the container. @param isolated it has a root of its own, with its volumes at their mount paths */
export function environmentOf(config: ContainerConfig, isolated: boolean): Record<string, string> {
  const env: Record<string, string> = {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOSTNAME: config.podName,
    // As container runtimes set it, not as the environment of who starts the cluster has it.
    HOME: homeOf(config.user?.uid ?? processUser().uid),
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
