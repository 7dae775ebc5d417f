/** The server's side of SPDY, spoken to in bytes: streams, data both ways, pings, and what breaks the protocol. */
import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { type SpdyStream, serveSpdy } from "./spdy-connection.ts";
import { HeaderCoder, spdyDictionary } from "./spdy-headers.ts";

/** Two ends of one connection. */
function pair(): [Duplex, Duplex] {
  const ends: Duplex[] = [];
  const make = (other: number) =>
    new Duplex({
      read() {},
      write(chunk, _encoding, done) {
        ends[other]?.push(chunk);
        done();
      },
      final(done) {
        ends[other]?.push(null);
        done();
      },
    });
  const [a, b] = [make(1), make(0)];
  ends.push(a, b);
  return [a, b];
}

const frame = (first: number, flags: number, body: Uint8Array) => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(first >>> 0);
  head.writeUInt32BE(((flags << 24) | body.length) >>> 0, 4);
  return Buffer.concat([head, body]);
};
const uint32 = (...values: number[]) => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i);
  return bytes;
};

/** A client that opens streams and reads frames. */
class Client {
  readonly socket: Duplex;
  readonly #coder = new HeaderCoder();
  #bytes = Buffer.alloc(0);

  constructor(socket: Duplex) {
    this.socket = socket;
  }

  async open(id: number, headers: Record<string, string>, flags = 0): Promise<void> {
    const block = await this.#coder.encode(new Map(Object.entries(headers)));
    const body = Buffer.concat([uint32(id, 0), Buffer.from([0, 0]), block]);
    this.socket.write(frame(0x8003_0001, flags, body));
  }

  /** The next frame: what its first word says, its flags, and its body. */
  async next(): Promise<
    { readonly first: number; readonly flags: number; readonly body: Buffer } | undefined
  > {
    for (;;) {
      if (this.#bytes.length >= 8 && this.#bytes.length >= 8 + this.#bytes.readUIntBE(5, 3)) {
        const end = 8 + this.#bytes.readUIntBE(5, 3);
        const body = this.#bytes.subarray(8, end);
        const found = { first: this.#bytes.readUInt32BE(0), flags: this.#bytes[4] ?? 0, body };
        this.#bytes = this.#bytes.subarray(end);
        return found;
      }
      const chunk = (await this.socket[Symbol.asyncIterator]().next()) as IteratorResult<Buffer>;
      if (chunk.done === true) return undefined;
      this.#bytes = Buffer.concat([this.#bytes, chunk.value]);
    }
  }
}

function served(): {
  client: Client;
  streams: SpdyStream[];
  opened: (count: number) => Promise<void>;
  closed: Promise<void>;
} {
  const [near, far] = pair();
  // One reader for all frames.
  const iterator = near[Symbol.asyncIterator]();
  near[Symbol.asyncIterator] = () => iterator;
  const streams: SpdyStream[] = [];
  let onOpen = () => {};
  const { closed } = serveSpdy(far, new Uint8Array(0), (stream) => {
    streams.push(stream);
    onOpen();
  });
  const opened = async (count: number) => {
    while (streams.length < count) {
      await new Promise<void>((resolve) => {
        onOpen = resolve;
      });
    }
  };
  return { client: new Client(near), streams, opened, closed };
}

const read = async (stream: SpdyStream | undefined) => {
  let text = "";
  for await (const bytes of stream?.input ?? []) text += Buffer.from(bytes).toString();
  return text;
};

test("the dictionary is that of the protocol", () => {
  // Adler-32, by which both sides name it at the beginning of their first block.
  let [a, b] = [1, 0];
  for (const byte of spdyDictionary) {
    a = (a + byte) % 65_521;
    b = (b + a) % 65_521;
  }
  expect((b * 65_536 + a).toString(16)).toBe("e3c6a7c2");
});

test("streams are opened with headers, and answered; data goes both ways until each side ends", async () => {
  const { client, streams, opened } = served();
  await client.open(1, { streamType: "error" });
  await client.open(3, { streamtype: "stdin", port: "80" });
  await opened(2);
  expect(streams.map(({ headers }) => headers.get("streamtype"))).toEqual(["error", "stdin"]);
  expect((await client.next())?.first).toBe(0x8003_0002);
  expect((await client.next())?.body.readUInt32BE(0)).toBe(3);
  // In pieces, as a network delivers them.
  const bytes = Buffer.concat([frame(3, 0, Buffer.from("to the ")), frame(3, 1, Buffer.from("server"))]);
  for (const byte of bytes) client.socket.write(Buffer.from([byte]));
  expect(await read(streams[1])).toBe("to the server");
  await streams[0]?.write(Buffer.from("to the client"));
  await streams[0]?.end();
  expect((await client.next())?.body.toString()).toBe("to the client");
  expect(await client.next()).toMatchObject({ first: 1, flags: 1 });
});

test("a ping comes back as it was", async () => {
  const { client } = served();
  client.socket.write(frame(0x8003_0006, 0, uint32(7)));
  expect(await client.next()).toMatchObject({ first: 0x8003_0006, body: uint32(7) });
});

test("a stream that the client resets ends, and what is sent to it goes nowhere", async () => {
  const { client, streams, opened } = served();
  await client.open(1, {});
  await opened(1);
  await client.next();
  client.socket.write(frame(0x8003_0003, 0, uint32(1, 5)));
  expect(await read(streams[0])).toBe("");
  await streams[0]?.write(Buffer.from("lost"));
  client.socket.write(frame(0x8003_0006, 0, uint32(9)));
  expect(await client.next()).toMatchObject({ first: 0x8003_0006 });
});

test.each([
  ["a frame that is too long", frame(1, 0, Buffer.alloc(0)).fill(0xff, 5, 8)],
  ["headers that are not compressed", frame(0x8003_0001, 0, Buffer.alloc(40, 1))],
])("%s ends the connection", async (_name, bytes) => {
  const { client, closed } = served();
  client.socket.write(bytes);
  await closed;
});

test("the end of the connection ends what is read of its streams", async () => {
  const { client, streams, opened, closed } = served();
  await client.open(1, {});
  await opened(1);
  client.socket.end();
  await closed;
  expect(await read(streams[0])).toBe("");
});
