/**
 * The liveness probe: each question about health becomes one Probe call to the driver (docs/behaviour/sidecars.md 8). It never
 * answers from memory, so a driver that hangs is seen within one deadline.
 */
import {
  CsiCallError,
  type CsiCallOptions,
  type CsiConnection,
  driverNameOf,
  instrumentedConnection,
} from "@longshore/csi";
import {
  type BackoffPolicy,
  backoffMs,
  type Component,
  errorChain,
  type RuntimeEnv,
  TaskGroup,
} from "@longshore/runtime";
import { type HealthAnswer, healthy, unhealthy } from "../common/health-answer.ts";
import { unnamedConnection } from "../common/sidecar-env.ts";

/** The seams of the liveness probe. */
export interface LivenessProbeEnv extends RuntimeEnv {
  readonly csi: CsiConnection;
}

/** How the liveness probe works. */
export interface LivenessProbeOptions {
  /** Deadline of each Probe, in milliseconds (`--probe-timeout`); default 1 s. */
  readonly probeTimeoutMs?: number;
}

/** A running liveness probe. */
export interface LivenessProbe extends Component {
  /** The driver's name, once it has said it. */
  driverName(): string | undefined;
  /** Settles once the driver has said its name: the reference opens its port only then. */
  readonly named: Promise<string>;
  /** What `GET /healthz` answers now. Never rejects. */
  check(signal: AbortSignal): Promise<HealthAnswer>;
}

const retry: BackoffPolicy = { initialMs: 500, maximumMs: 10_000 };

/** Waits for the driver's name in the background; answers questions from the first moment on. */
export function startLivenessProbe(env: LivenessProbeEnv, options: LivenessProbeOptions = {}): LivenessProbe {
  const timeoutMs = options.probeTimeoutMs ?? 1000;
  const tasks = new TaskGroup((error) => env.logger.error("the liveness probe failed", { error }));
  let known: { readonly name: string; readonly csi: CsiConnection } | undefined;
  const named = new Promise<string>((resolve) => {
    tasks.spawn(async (signal) => {
      const name = await learnName(env, { signal, timeoutMs });
      known = { name, csi: instrumentedConnection(env, env.csi, { driver_name: name }) };
      env.logger.info("probing the driver", { driver: name });
      resolve(name);
    });
  });
  return {
    named,
    driverName: () => known?.name,
    async check(signal) {
      if (known === undefined) return unhealthy("the driver has not said its name yet");
      return answerOf(known.csi, { signal, timeoutMs });
    },
    stop: () => tasks.stop(),
  };
}

/** One Probe. `ready` left out means ready (CSI, Probe). */
async function answerOf(csi: CsiConnection, options: CsiCallOptions): Promise<HealthAnswer> {
  try {
    const { ready } = await csi.identity.probe({}, options);
    return ready === false ? unhealthy("driver responded but is not ready") : healthy;
  } catch (error) {
    return unhealthy(errorChain(error));
  }
}

async function learnName(env: LivenessProbeEnv, options: CsiCallOptions): Promise<string> {
  const unnamed = unnamedConnection(env);
  for (let failures = 1; ; failures++) {
    try {
      // Not ready is no reason to wait: reporting so is what the probe is for.
      return await driverNameOf(unnamed, options);
    } catch (error) {
      if (options.signal.aborted) throw error;
      const retryInMs = backoffMs(retry, failures, env.random);
      // A driver that is only starting is nothing to warn of, and is mentioned once.
      const isStarting = error instanceof CsiCallError && !error.answered;
      if (!isStarting) env.logger.warn("the driver does not give its name", { error, retryInMs });
      else if (failures === 1) env.logger.info("waiting for the driver", { error });
      await env.clock.sleep(retryInMs, options.signal);
    }
  }
}
