/** What is installed in a driver directory, and what of it works. */
import { errorChain, type Host } from "@longshore/runtime";
import { FlexVolumeDriver, type FlexVolumeDriverEnv } from "./driver-calls.ts";
import { lookAtDriverDirectory } from "./driver-directory.ts";
import type { DriverCapabilities } from "./driver-status.ts";
import { initDriver } from "./init-driver.ts";

/** An installed driver. */
export interface ListedFlexVolumeDriver {
  /** `vendor/driver`, as the volumes name it. */
  readonly driver: string;
  readonly executable: string;
  /** Undefined: it does not work. */
  readonly capabilities: DriverCapabilities | undefined;
  /** Why it does not work; empty: it does. */
  readonly problem: string;
}

/** Looks at the directory, which exists, and runs the `init` of each driver, one after the other. */
export async function listFlexVolumeDrivers(
  env: FlexVolumeDriverEnv & { readonly host: Host },
  directory: string,
  signal: AbortSignal,
): Promise<readonly ListedFlexVolumeDriver[]> {
  const listed: ListedFlexVolumeDriver[] = [];
  for (const installed of (await lookAtDriverDirectory(env.host, directory)).drivers.values()) {
    const { pluginName: driver, executable } = installed;
    try {
      const capabilities = await initDriver(new FlexVolumeDriver(env, installed), installed, signal);
      listed.push({ driver, executable, capabilities, problem: "" });
    } catch (error) {
      signal.throwIfAborted();
      listed.push({ driver, executable, capabilities: undefined, problem: errorChain(error) });
    }
  }
  return listed;
}
