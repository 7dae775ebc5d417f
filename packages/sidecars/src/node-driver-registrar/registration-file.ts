/**
 * The file `registration` in the directory of the driver's socket. It exists while the kubelet has registered the
 * driver, so that an exec probe (`--mode=kubelet-registration-probe`) can see it from another process. Where the
 * directory is not mounted into the registrar's container there is no file, and nothing else depends on it.
 */
import type { Host, Logger } from "@longshore/runtime";

/** What keeping the file needs. */
export interface RegistrationFileEnv {
  readonly logger: Logger;
  readonly host?: Pick<Host, "stat" | "writeFileAtomic" | "removeFile">;
}

/** Where the file is, for a driver whose socket the kubelet sees at this path. */
export function registrationFileOf(kubeletRegistrationPath: string): string {
  const directory = kubeletRegistrationPath.slice(0, kubeletRegistrationPath.lastIndexOf("/"));
  return `${directory}/registration`;
}

/** Writes the file; never fails. */
export async function rememberRegistration(
  { host, logger }: RegistrationFileEnv,
  path: string,
): Promise<void> {
  const file = registrationFileOf(path);
  await host?.writeFileAtomic(file, "").catch((error) => {
    logger.debug("no file for the registration probe", { file, error });
  });
}

/** Removes the file; never fails. */
export async function forgetRegistration({ host, logger }: RegistrationFileEnv, path: string): Promise<void> {
  const file = registrationFileOf(path);
  await host?.removeFile(file).catch((error) => {
    logger.debug("the file for the registration probe stays", { file, error });
  });
}

/**
 * `--mode=kubelet-registration-probe`: whether the kubelet has registered the driver. The process exits with 0 when the
 * answer is undefined, and otherwise prints it and exits with 1.
 */
export async function registrationProbe(
  host: Pick<Host, "stat">,
  kubeletRegistrationPath: string,
): Promise<string | undefined> {
  const file = registrationFileOf(kubeletRegistrationPath);
  try {
    if ((await host.stat(file)) !== undefined) return undefined;
  } catch (error) {
    return `cannot look for ${file}: ${error instanceof Error ? error.message : String(error)}`;
  }
  return `the kubelet has not registered the driver: ${file} does not exist`;
}
