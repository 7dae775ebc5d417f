import { createLogger } from "@longshore/runtime";
import { expect, test } from "vitest";
import { type Routes, serveHttp } from "./serve-http.ts";

test("a probe that comes before the sidecar has started is answered once it has, without a 404", async () => {
  let address = "";
  const logger = createLogger({ format: "human", level: "error" });
  const info = (_: string, fields?: object) => {
    address = String(Object(fields).address);
  };
  const seen = { ...logger, info };
  const routes: Routes = new Map();
  let onComplete = () => {};
  const complete = new Promise<void>((resolve) => {
    onComplete = resolve;
  });
  const server = await serveHttp(seen, "--http-endpoint", "127.0.0.1:0", routes, complete);
  const early = fetch(`http://${address}/healthz`);
  const unknown = fetch(`http://${address}/other`);
  routes.set("/healthz", async () => ({ status: 200, body: "ok" }));
  onComplete();
  expect((await early).status).toBe(200);
  expect((await unknown).status).toBe(404);
  await server.stop();
});
