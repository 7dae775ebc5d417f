/** Stands between sidecars and API server and counts their requests, in a pass of its own that is not timed. */
import { createServer } from "node:http";
import { Agent, request } from "node:https";
import type { AddressInfo } from "node:net";
import type { Target } from "../apiserver/raw-http.ts";

/** A running proxy. */
export interface CountingProxy {
  readonly url: string;
  /** Requests by `VERB resource`, since the last time this was asked. */
  take(): ReadonlyMap<string, number>;
  close(): void;
}

/** Starts one; it answers without TLS and adds the credentials itself. */
export async function startCountingProxy(target: Target): Promise<CountingProxy> {
  let counts = new Map<string, number>();
  const agent = new Agent({ keepAlive: true, ca: target.ca });
  const server = createServer((incoming, outgoing) => {
    const what = `${verbOf(incoming.method ?? "", incoming.url ?? "")} ${resourceOf(incoming.url ?? "")}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
    const headers = { ...incoming.headers, authorization: `Bearer ${target.token}` };
    const { host, port } = target;
    const upstream = request(
      { agent, host, port, method: incoming.method, path: incoming.url, headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    upstream.on("error", () => outgoing.destroy());
    outgoing.on("close", () => upstream.destroy());
    incoming.pipe(upstream);
  });
  server.keepAliveTimeout = 0; // An API server keeps idle connections, too.
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    take() {
      const taken = counts;
      counts = new Map();
      return taken;
    },
    close() {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
}

function verbOf(method: string, url: string): string {
  if (method !== "GET") return method;
  return /[?&]watch=/.test(url) ? "WATCH" : "GET";
}

/** `persistentvolumeclaims/status` of `/api/v1/namespaces/default/persistentvolumeclaims/a/status`. */
function resourceOf(url: string): string {
  const [path = ""] = url.split("?");
  const parts = path.split("/").filter(Boolean);
  const rest = parts.slice(parts[0] === "api" ? 2 : 3);
  const [plural = path, , subresource] = rest[0] === "namespaces" && rest.length > 2 ? rest.slice(2) : rest;
  return subresource === undefined ? plural : `${plural}/${subresource}`;
}
