/**
 * `/healthz`, `/livez` and `/readyz`, each check below them, and with `verbose` all of them one by one (apiserver
 * server/healthz). The server answers from one thread and its own store, so all checks have one answer.
 */
import type { PathCall, PathEndpoint } from "./path-endpoint.ts";
import { sendText } from "./respond.ts";

const checks = ["ping", "log", "etcd"];

/** The health of the server. */
export const healthEndpoints: readonly PathEndpoint[] = [
  { path: /^\/(healthz|livez|readyz)$/, answer: health },
  { path: new RegExp(`^/(healthz|livez|readyz)/(${checks.join("|")})$`), answer: oneCheck },
];

function oneCheck({ server, request, response }: PathCall): void {
  if (server.running) sendText(request, response, 200, "ok");
  else sendText(request, response, 503, "stopping");
}

function health(call: PathCall): void {
  const { server, path, params, request, response } = call;
  if (!params.has("verbose")) {
    oneCheck(call);
    return;
  }
  const name = path.slice(1);
  // The check that clients see fail first: a server that stops is alive, but takes no more requests.
  const all = name === "readyz" ? [...checks, "shutdown"] : checks;
  const excluded = new Set(params.getAll("exclude"));
  const lines = all.map((check) => {
    if (excluded.has(check)) return `[+]${check} excluded: ok`;
    return check === "shutdown" && !server.running ? "[-]shutdown failed: reason withheld" : `[+]${check} ok`;
  });
  const passes = server.running || excluded.has("shutdown") || name !== "readyz";
  lines.push(`${name} check ${passes ? "passed" : "failed"}`);
  sendText(request, response, passes ? 200 : 503, `${lines.join("\n")}\n`);
}
