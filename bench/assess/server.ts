/**
 * Sends the pages of a directory as an API server does, over TLS, as fast as they are read: a process of its own, so that what is
 * measured is who reads. Arguments: the directory of the pages, and the repository, whose built package makes the
 * certificate; it prints its port and, as one line of JSON, its certificate.
 */
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { pathToFileURL } from "node:url";
import { pageFile } from "./pages.ts";

const [directory = "", repository = ""] = process.argv.slice(2);
const apiServerModule = pathToFileURL(`${repository}/packages/apiserver/dist/index.js`).href;
const { createAuthority, issueCertificate } = (await import(
  apiServerModule
)) as typeof import("@longshore/apiserver");
const authority = await createAuthority("bench authority", new Date());
const own = await issueCertificate(authority, {
  commonName: "bench",
  hosts: ["127.0.0.1"],
  now: new Date(),
});
const empty = '{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1000000"},"items":[]}';
const server = createServer({ cert: own.certificate, key: own.key }, (request, response) => {
  const url = new URL(request.url ?? "/", "http://localhost");
  const file = pageFile(directory, url.pathname, Number(url.searchParams.get("continue") ?? 0));
  response.setHeader("content-type", "application/json");
  response.end(existsSync(file) ? readFileSync(file) : empty);
});
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port, ca: authority.certificate }));
});
process.on("disconnect", () => process.exit());
