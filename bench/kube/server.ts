/**
 * Sends lists and watches from memory, as fast as they are read: a process of its own, so that what is measured is
 * who reads. As API servers do, it speaks TLS. Its arguments are the number of objects, that of events and the
 * repository, whose built package makes the certificate; it prints its port and, as one line of JSON, its certificate.
 */
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { pathToFileURL } from "node:url";
import { eventLine, listVersion, pageItems, pageJson } from "./stream.ts";

const [size = 0, events = 0] = process.argv.slice(2, 4).map(Number);
const apiServerModule = pathToFileURL(`${process.argv[4]}/packages/apiserver/dist/index.js`).href;
const { createAuthority, issueCertificate } = (await import(
  apiServerModule
)) as typeof import("@longshore/apiserver");
const pages: Buffer[] = [];
for (let from = 0; from < size; from += pageItems) pages.push(Buffer.from(pageJson(from, size)));

/** Lines in pieces of a size that sockets like. */
function pieces(count: number, line: (index: number) => string): Buffer[] {
  const made: Buffer[] = [];
  for (let from = 0; from < count; from += 40) {
    let text = "";
    for (let index = from; index < Math.min(from + 40, count); index++) text += line(index);
    made.push(Buffer.from(text));
  }
  return made;
}

const initial = pieces(size, (index) => eventLine("ADDED", index, listVersion - size + index));
const ends = `{"type":"BOOKMARK","object":{"kind":"PersistentVolume","apiVersion":"v1","metadata":{"resourceVersion":"${listVersion}","annotations":{"k8s.io/initial-events-end":"true"}}}}\n`;
const changes = pieces(events, (index) =>
  eventLine("MODIFIED", (index * 7919) % size, listVersion + 1 + index),
);

async function send(response: ServerResponse, lines: readonly Buffer[]): Promise<void> {
  for (const piece of lines) {
    if (response.destroyed) return;
    if (!response.write(piece)) await new Promise((resolve) => response.once("drain", resolve));
  }
}

let watching: ServerResponse | undefined;
const authority = await createAuthority("bench authority", new Date());
const own = await issueCertificate(authority, {
  commonName: "bench",
  hosts: ["127.0.0.1"],
  now: new Date(),
});
const server = createServer({ cert: own.certificate, key: own.key }, async (request, response) => {
  const url = new URL(request.url ?? "/", "http://localhost");
  response.setHeader("content-type", "application/json");
  if (url.pathname === "/go") {
    response.end("{}");
    if (watching !== undefined) await send(watching, changes);
  } else if (url.searchParams.get("watch") !== null) {
    watching = response;
    response.flushHeaders();
    if (url.searchParams.get("sendInitialEvents") !== null)
      await send(response, [...initial, Buffer.from(ends)]);
  } else {
    const from = Number(url.searchParams.get("continue") ?? 0);
    response.end(pages[from / pageItems]);
  }
});
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port, ca: authority.certificate }));
});
process.on("disconnect", () => process.exit());
