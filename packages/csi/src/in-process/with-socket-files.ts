/**
 * Makes socket files for in-process servers on a simulated host, so that code which looks for sockets there
 * (plugin registration above all) finds them as it would on a real machine.
 */

import type { SimulatedHost } from "@longshore/runtime";
import type { CsiListener, CsiServer } from "../csi-connection.ts";

/** The listener, with a socket file for as long as each server listens. */
export function withSocketFiles(listener: CsiListener, host: SimulatedHost): CsiListener {
  const placed = async (server: CsiServer): Promise<CsiServer> => {
    await host.removeFile(server.endpoint);
    host.placeSocket(server.endpoint);
    return {
      endpoint: server.endpoint,
      async close() {
        await host.removeFile(server.endpoint);
        await server.close();
      },
    };
  };
  return {
    serve: async (endpoint, services) => placed(await listener.serve(endpoint, services)),
    serveRegistration: async (path, handlers) => placed(await listener.serveRegistration(path, handlers)),
  };
}
