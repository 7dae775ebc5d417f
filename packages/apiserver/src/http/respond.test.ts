import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { KubeApiError } from "@longshore/kube";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { realEnv } from "../testing/serve.ts";
import { chunkBytes, inChunks } from "./chunks.ts";
import { respondWithFailure, sendRendered } from "./respond.ts";

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Answers every request with `parts`. Returns the answer to one, and a promise for the end of its handling. */
async function answered(parts: () => Iterable<Uint8Array>, method = "GET", headers = {}) {
  let done: Promise<void> = Promise.resolve();
  server = createServer((asked, response) => {
    done = sendRendered(asked, response, 200, { type: "application/json", parts: parts() });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sent = request({ port, host: "127.0.0.1", method, headers });
  sent.on("error", () => {});
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { response, done: () => done };
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const text = (length: number) => Buffer.alloc(length, "0123456789");

describe("an answer", () => {
  it("that is short has its length", async () => {
    const { response } = await answered(() => [text(10), text(20)]);
    expect(response.headers["content-length"]).toBe("30");
    expect(await bodyOf(response)).toEqual(Buffer.concat([text(10), text(20)]));
  });

  it("that is long comes in chunks, whole", async () => {
    const parts = Array.from({ length: 500 }, (_, i) => text(1000 + i));
    const { response } = await answered(() => parts);
    expect(response.headers["content-length"]).toBeUndefined();
    expect((await bodyOf(response)).equals(Buffer.concat(parts))).toBe(true);
  });

  it.each([
    ["one piece", [text(3 * chunkBytes)]],
    ["many", Array.from({ length: 300 }, () => text(1999))],
  ])("is compressed for those who can read that, of %s", async (_name, parts) => {
    const { response } = await answered(() => parts, "GET", { "accept-encoding": "gzip" });
    expect(response.headers["content-encoding"]).toBe("gzip");
    const body = await bodyOf(response);
    expect(gunzipSync(body).equals(Buffer.concat(parts))).toBe(true);
    expect(body.length).toBeLessThan(20_000);
  });

  it("to HEAD has no body, however long", async () => {
    const { response, done } = await answered(() => Array.from({ length: 300 }, () => text(1999)), "HEAD");
    expect(await bodyOf(response)).toHaveLength(0);
    await done();
  });

  it.each([{}, { "accept-encoding": "gzip" }])("is made only as it is read, with %o", async (headers) => {
    let made = 0;
    const endless = function* () {
      for (;;) {
        made++;
        // What can be compressed to nothing would never fill a buffer.
        yield randomBytes(chunkBytes);
      }
    };
    const { response, done } = await answered(endless, "GET", headers);
    response.pause();
    let before = -1;
    // The buffers of both ends fill up, and then nothing more is made.
    while (made !== before) {
      before = made;
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    expect(made).toBeLessThan(2000);
    response.destroy();
    await done();
  });
});

describe("chunks", () => {
  it("hold what the parts hold, and few are small", () => {
    const sizes = fc.array(fc.oneof(fc.nat(5000), fc.nat(3 * chunkBytes)), { maxLength: 60 });
    fc.assert(
      fc.property(sizes, (lengths) => {
        const parts = lengths.map(text);
        const chunks = [...inChunks(parts)];
        expect(Buffer.concat(chunks).equals(Buffer.concat(parts))).toBe(true);
        const sum = lengths.reduce((a, b) => a + b, 0);
        expect(chunks.length).toBeLessThanOrEqual(2 * Math.ceil(sum / chunkBytes) + 1);
      }),
      { numRuns: 50 },
    );
  });

  it("are made one at a time", () => {
    let taken = 0;
    const parts = function* () {
      for (; taken < 100; taken++) yield text(chunkBytes / 2);
    };
    inChunks(parts()).next();
    expect(taken).toBeLessThan(5);
  });
});

describe("a failure that cannot be written down", () => {
  it("ends its connection, and nothing else", async () => {
    const status = { kind: "Status", apiVersion: "v1", status: "Failure", message: 1n, code: 400 };
    server = createServer((asked, response) => {
      respondWithFailure(realEnv, asked, response, new KubeApiError(status as never));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const sent = request({ port, host: "127.0.0.1" });
    sent.end();
    const [error] = (await once(sent, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNRESET");
  });
});
