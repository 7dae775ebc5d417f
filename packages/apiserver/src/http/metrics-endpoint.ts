/** `/metrics`, in the text form of Prometheus: for who may read that path, as `system:monitoring` may. */
import { checkReads, type PathEndpoint } from "./path-endpoint.ts";
import { send, sendPageNotFound } from "./respond.ts";

/** The metrics of the server; not there where they cannot be read. */
export const metricsEndpoint: PathEndpoint = {
  path: "/metrics",
  async answer(call) {
    const { metrics, request, response } = call;
    if (metrics === undefined) return sendPageNotFound(request, response);
    checkReads(call);
    send(request, response, 200, await metrics.exposition(), metrics.contentType);
  },
};
