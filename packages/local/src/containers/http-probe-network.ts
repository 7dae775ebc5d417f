/** Probes over the machine's network. Real form of {@link ProbeNetwork}. */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { checkGrpcHealth } from "./http-grpc-health.ts";
import type { ProbeNetwork } from "./probe-network.ts";

/** The machine's network; containers share it. */
export const httpProbeNetwork: ProbeNetwork = {
  httpGet: ({ scheme, host, port, path, headers }, signal) =>
    new Promise((resolve, reject) => {
      const target = { host, port, path, headers: { ...headers }, signal, agent: false };
      const send = () =>
        scheme === "https" ? httpsRequest({ ...target, rejectUnauthorized: false }) : httpRequest(target);
      const request = send();
      request.on("error", reject);
      request.on("response", (response) => {
        resolve(response.statusCode ?? 0);
        response.destroy(); // The status is all that counts.
      });
      request.end();
    }),
  connect: (host, port, signal) =>
    new Promise((resolve, reject) => {
      const socket = connect({ host, port });
      const end = (settle: () => void) => {
        signal.removeEventListener("abort", abort);
        socket.destroy();
        settle();
      };
      const abort = () => end(() => reject(signal.reason));
      signal.addEventListener("abort", abort, { once: true });
      socket.on("connect", () => end(resolve));
      socket.on("error", (error) => end(() => reject(error)));
      if (signal.aborted) abort();
    }),
  grpcHealth: checkGrpcHealth,
};
