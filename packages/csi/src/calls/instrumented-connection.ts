/** Connections that log and measure their calls; they wrap the seam from outside. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { LogFields, RuntimeEnv } from "@longshore/runtime";
import { fieldsWithSecrets, redactWith } from "../checks/check-answer.ts";
import type { CsiConnection, CsiConnector } from "../csi-connection.ts";
import { CsiCallError } from "../errors.ts";
import { secretsOfRequest } from "../secrets/request-secrets.ts";
import { interceptCalls } from "./intercept-calls.ts";

/** Buckets of both metrics, in seconds, as csi-lib-utils has them. */
const operationBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Observes how long calls took. */
type ObserveCall = (method: DescMethod, code: string, tookMs: number, labels: Labels) => void;
type Labels = Readonly<Record<string, string>>;

function callDurations({ meter }: Pick<RuntimeEnv, "meter">, metric: CallMetric): ObserveCall {
  const seconds = meter.histogram(metric, {
    help: "Duration of CSI calls, in seconds.",
    labels: ["driver_name", "method_name", "grpc_status_code", "migrated"],
    buckets: operationBuckets,
  });
  return (method, code, tookMs, labels) =>
    seconds.observe(tookMs / 1000, {
      ...labels,
      method_name: `/${method.parent.typeName}/${method.name}`,
      grpc_status_code: code,
    });
}

const codeOf = (error: unknown): string => (error instanceof CsiCallError ? error.code : "UNKNOWN");

/** The metric of the kubelet, and that of sidecars. */
export type CallMetric = "csi_operations_seconds" | "csi_sidecar_operations_seconds";

/**
 * The same connection, with the duration of every unary call observed in `metric`; default `csi_operations_seconds`, as the kubelet does.
 * Source: docs/behaviour/node-agent.md 10.
 */
export function measuredConnection(
  env: Pick<RuntimeEnv, "clock" | "meter">,
  connection: CsiConnection,
  labels: Readonly<Partial<Record<"driver_name" | "migrated", string>>>,
  metric: CallMetric = "csi_operations_seconds",
): CsiConnection {
  const observe = callDurations(env, metric);
  return interceptCalls(connection, async (method, _request, _options, send) => {
    const startedMs = env.clock.monotonicMs();
    const end = (code: string) => observe(method, code, env.clock.monotonicMs() - startedMs, labels);
    try {
      const answer = await send();
      end("OK");
      return answer;
    } catch (error) {
      end(codeOf(error));
      throw error;
    }
  });
}

/**
 * The same connection, with every unary call logged (debug; failures at info) without its secrets, and its duration
 * observed in `csi_sidecar_operations_seconds`. Streams go straight through. Logs one warning for each field (an id or
 * a context) in which the driver returns a value of the secrets.
 * @param labels further labels of the metric, e.g. `driver_name`. `migrated`, where it is among them, is what a call
 *   says of itself, and else what stands here.
 */
export function instrumentedConnection(
  env: Pick<RuntimeEnv, "clock" | "logger" | "meter">,
  connection: CsiConnection,
  labels: Labels = {},
): CsiConnection {
  const observe = callDurations(env, "csi_sidecar_operations_seconds");
  const warned = new Set<string>();
  const warnOnce = (rpc: string, field: string) => {
    if (warned.has(`${rpc} ${field}`)) return;
    warned.add(`${rpc} ${field}`);
    env.logger.warn("the response contains a value of the request's secrets: it is stored unencrypted", {
      rpc,
      field,
    });
  };
  return interceptCalls(connection, async (method, request, options, send) => {
    const startedMs = env.clock.monotonicMs();
    const secrets = secretsOfRequest(method.input, request);
    const end = (code: string, fields: () => LogFields) => {
      const tookMs = env.clock.monotonicMs() - startedMs;
      observe(method, code, tookMs, {
        ...labels,
        ...(options.migrated === undefined || labels.migrated === undefined
          ? {}
          : { migrated: String(options.migrated) }),
      });
      if (code === "OK" && env.logger.debugs === false) return;
      env.logger[code === "OK" ? "debug" : "info"](`CSI ${method.name} ${code}`, {
        request: redactWith(method.input, request, secrets),
        tookMs,
        ...fields(),
      });
    };
    try {
      const answer = await send();
      if (secrets !== undefined) {
        for (const field of fieldsWithSecrets(method.output, answer, secrets)) warnOnce(method.name, field);
      }
      end("OK", () => ({ response: redactWith(method.output, answer, secrets) }));
      return answer;
    } catch (error) {
      end(codeOf(error), () => ({ error }));
      throw error;
    }
  });
}

/** A connector whose connections are instrumented. */
export function instrumentedConnector(
  env: Pick<RuntimeEnv, "clock" | "logger" | "meter">,
  connector: CsiConnector,
  labels?: Labels,
): CsiConnector {
  return {
    connect: (endpoint, options) => instrumentedConnection(env, connector.connect(endpoint, options), labels),
    connectRegistration: (socketPath) => connector.connectRegistration(socketPath),
  };
}
