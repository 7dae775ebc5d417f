/** Connections that log and measure their calls; they wrap the seam from outside. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { LogFields, RuntimeEnv } from "@longshore/runtime";
import type { CsiCallOptions, CsiConnection, CsiConnector } from "./connection.ts";
import { CsiCallError } from "./errors.ts";
import { Controller, GroupController, Identity, Node } from "./gen/csi_pb.ts";
import { redact } from "./redact.ts";
import { connectionOver } from "./unary.ts";

/** Buckets of `csi_sidecar_operations_seconds`, in seconds, as csi-lib-utils has them. */
const operationBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

type Call = (
  request: MessageShape<DescMessage>,
  options: CsiCallOptions,
) => Promise<MessageShape<DescMessage>>;

/**
 * The same connection, with every call logged (debug; failures at info) without its secrets, and
 * its duration observed in `csi_sidecar_operations_seconds`.
 * @param labels further labels of the metric, e.g. `driver_name` and `migrated`
 */
export function instrumentedConnection(
  env: Pick<RuntimeEnv, "clock" | "logger" | "meter">,
  connection: CsiConnection,
  labels: Readonly<Record<string, string>> = {},
): CsiConnection {
  const seconds = env.meter.histogram("csi_sidecar_operations_seconds", {
    help: "Duration of CSI calls, in seconds.",
    labels: ["driver_name", "method_name", "grpc_status_code", "migrated"],
    buckets: operationBuckets,
  });
  const clients = new Map<DescService, Record<string, unknown>>([
    [Identity, connection.identity],
    [Controller, connection.controller],
    [GroupController, connection.groupController],
    [Node, connection.node],
  ]);
  return connectionOver(
    async (method, request, options) => {
      const call = clients.get(method.parent)?.[method.localName] as Call;
      const startedMs = env.clock.monotonicMs();
      const end = (code: string, fields: LogFields) => {
        const tookMs = env.clock.monotonicMs() - startedMs;
        const name = `/${method.parent.typeName}/${method.name}`;
        seconds.observe(tookMs / 1000, { ...labels, method_name: name, grpc_status_code: code });
        env.logger[code === "OK" ? "debug" : "info"](`CSI ${method.name} ${code}`, {
          request: redact(method.input, request),
          tookMs,
          ...fields,
        });
      };
      try {
        const answer = create((method as DescMethodUnary).output, await call(request, options));
        end("OK", { response: redact(method.output, answer as MessageShape<typeof method.output>) });
        return answer as MessageShape<typeof method.output>;
      } catch (error) {
        end(error instanceof CsiCallError ? error.code : "UNKNOWN", { error });
        throw error;
      }
    },
    () => connection.close(),
  );
}

/** A connector whose connections are instrumented. */
export function instrumentedConnector(
  env: Pick<RuntimeEnv, "clock" | "logger" | "meter">,
  connector: CsiConnector,
  labels?: Readonly<Record<string, string>>,
): CsiConnector {
  return {
    connect: (endpoint) => instrumentedConnection(env, connector.connect(endpoint), labels),
    connectRegistration: (socketPath) => connector.connectRegistration(socketPath),
  };
}
