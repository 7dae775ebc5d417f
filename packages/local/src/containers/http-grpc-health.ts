/** The health check of gRPC services. Source: grpc.health.v1; kubernetes pkg/probe/grpc. Real form. */
import { Client, credentials, status } from "@grpc/grpc-js";
import type { GrpcHealthRequest } from "./probe-network.ts";

const method = "/grpc.health.v1.Health/Check";
const channelOptions = {
  "grpc.enable_http_proxy": 0,
  // A pool that outlives the client would keep the connection of a container that has ended.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.max_receive_message_length": 64 * 1024,
};
/** The numbers of `HealthCheckResponse.ServingStatus`. */
const servingStatuses = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

/** Asks once, without TLS. Resolves with the name of the status. @throws Error without an answer, which names the gRPC code; the signal's reason */
export function checkGrpcHealth(
  { host, port, service }: GrpcHealthRequest,
  signal: AbortSignal,
): Promise<string> {
  const address = host.includes(":") ? `[${host}]` : host;
  const client = new Client(`${address}:${port}`, credentials.createInsecure(), channelOptions);
  return new Promise<string>((resolve, reject) => {
    const call = client.makeUnaryRequest(
      method,
      healthRequest,
      servingStatusOf,
      service,
      (error, answer = 0) => {
        if (error === null) resolve(servingStatuses[answer] ?? String(answer));
        else if (signal.aborted) reject(signal.reason);
        else reject(new Error(`gRPC ${status[error.code]}: ${error.details}`));
      },
    );
    signal.addEventListener("abort", () => call.cancel(), { once: true });
    if (signal.aborted) call.cancel();
  }).finally(() => client.close());
}

/** `HealthCheckRequest`: the name of the service is field 1. */
function healthRequest(service: string): Buffer {
  const name = Buffer.from(service);
  if (name.length === 0) return Buffer.alloc(0);
  const length: number[] = [];
  for (let left = name.length; ; left >>>= 7) {
    if (left < 0x80) {
      length.push(left);
      return Buffer.concat([Buffer.of(0x0a, ...length), name]);
    }
    length.push((left & 0x7f) | 0x80);
  }
}

/** The status of a `HealthCheckResponse`, which is field 1, a number of one byte. An empty answer is `UNKNOWN`. */
function servingStatusOf(answer: Buffer): number {
  return answer[0] === 0x08 ? (answer[1] ?? 0) : 0;
}
