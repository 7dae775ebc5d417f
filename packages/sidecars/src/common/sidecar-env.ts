/** What a sidecar of the controller side is given, and what it learns about its driver. */
import {
  type CsiCallOptions,
  type CsiConnection,
  capabilitiesOf,
  type DriverCapabilities,
  driverNameOf,
  instrumentedConnection,
  measuredConnection,
  waitUntilReady,
} from "@longshore/csi";
import type { KubeEnv } from "@longshore/kube";
import { type BackoffPolicy, backoffMs, type Timer } from "@longshore/runtime";
import { getInTreeNameFromCSIName, isMigratedCSIDriverByName } from "@longshore/translation";

/** The seams of a sidecar. */
export interface SidecarEnv extends KubeEnv {
  readonly csi: CsiConnection;
}

/** A driver as its sidecars know it. */
export interface Driver {
  readonly name: string;
  /** The in-tree plugin that migrates to this driver, if one does. */
  readonly inTreeName: string | undefined;
  readonly capabilities: DriverCapabilities;
  /** Its connection, logged and measured. */
  readonly csi: CsiConnection;
}

/** Delays between attempts to learn about a driver that fails. */
const learnBackoff: BackoffPolicy = { initialMs: 1000, maximumMs: 60_000 };

/**
 * The connection to a driver that has not said its name yet: its calls are counted, under the name that csi-lib-utils gives it. They
 * are not logged: a driver that is waited for is asked again and again.
 */
export function unnamedConnection(env: Pick<SidecarEnv, "clock" | "meter" | "csi">): CsiConnection {
  return measuredConnection(
    env,
    env.csi,
    { driver_name: "unknown-driver" },
    "csi_sidecar_operations_seconds",
  );
}

/** Waits for the driver and asks who it is, again and again until it answers (docs/behaviour/sidecars.md 1). */
export async function learnDriver(env: SidecarEnv, timeoutMs: number, signal: AbortSignal): Promise<Driver> {
  const waiting = logWaiting(env);
  try {
    return await askUntilKnown(env, { signal, timeoutMs });
  } finally {
    waiting.cancel();
  }
}

/** Interval between log lines about a driver that is not there yet (csi-lib-utils, connection). */
const waitingLogMs = 30_000;

function logWaiting({ clock, logger }: Pick<SidecarEnv, "clock" | "logger">): Timer {
  const startedMs = clock.monotonicMs();
  const again = (): Timer =>
    clock.timer(waitingLogMs, () => {
      logger.info("still waiting for the driver", {
        seconds: Math.round((clock.monotonicMs() - startedMs) / 1000),
      });
      timer = again();
    });
  let timer = again();
  return { cancel: () => timer.cancel() };
}

async function askUntilKnown(env: SidecarEnv, options: CsiCallOptions): Promise<Driver> {
  const { signal } = options;
  const unnamed = unnamedConnection(env);
  for (let failures = 1; ; failures++) {
    try {
      await waitUntilReady(env, unnamed, options);
      const name = await driverNameOf(unnamed, options);
      const inTreeName = isMigratedCSIDriverByName(name) ? getInTreeNameFromCSIName(name) : undefined;
      // As in csi-lib-utils, only drivers that in-tree volumes migrate to have the label `migrated`.
      const labels = { driver_name: name, ...(inTreeName === undefined ? {} : { migrated: "false" }) };
      const csi = instrumentedConnection(env, env.csi, labels);
      const capabilities = await capabilitiesOf(csi, options);
      return { name, inTreeName, capabilities, csi };
    } catch (error) {
      if (signal.aborted) throw error;
      const retryInMs = backoffMs(learnBackoff, failures, env.random);
      env.logger.warn("the driver does not say who it is", { error, retryInMs });
      await env.clock.sleep(retryInMs, signal);
    }
  }
}
