/**
 * Header blocks of SPDY/3.1: names and values with their lengths, compressed over the whole connection with a dictionary that
 * both sides know. Source: SPDY Protocol, Draft 3.1, section 2.6.10.
 */
import { constants, createDeflate, createInflate, type Deflate, type Inflate } from "node:zlib";

/** Headers by their names in lower case. */
export type SpdyHeaders = ReadonlyMap<string, string>;

/** The words of the dictionary that have their lengths before them. */
const words = [
  ..."options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges".split(
    " ",
  ),
  ..."age allow authorization cache-control connection content-base content-encoding content-language".split(
    " ",
  ),
  ..."content-length content-location content-md5 content-range content-type date etag expect expires from".split(
    " ",
  ),
  ..."host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location".split(
    " ",
  ),
  ..."max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer".split(
    " ",
  ),
  ..."transfer-encoding upgrade user-agent vary via warning www-authenticate method get status".split(" "),
  "200 OK",
  ..."version HTTP/1.1 url public set-cookie keep-alive origin".split(" "),
];

/** The rest of it. */
const text = [
  "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505",
  "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized",
  "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable",
  "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT",
  "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,",
  "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
].join("");

/** The dictionary of both directions. */
export const spdyDictionary: Buffer = Buffer.concat([
  ...words.flatMap((word) => [uint32(word.length), Buffer.from(word)]),
  Buffer.from(text),
]);

/** Most bytes of the headers of one frame. */
const blockBytesMax = 64 * 1024;

/** One direction's compression state: its blocks are handled one after another. */
export class HeaderCoder {
  readonly #deflate: Deflate = createDeflate({ dictionary: spdyDictionary });
  readonly #inflate: Inflate = createInflate({ dictionary: spdyDictionary });

  /** The compressed block. */
  async encode(headers: SpdyHeaders): Promise<Buffer> {
    const pairs = [...headers].flatMap(([name, value]) => [lengthAndText(name), lengthAndText(value)]);
    return pass(this.#deflate, Buffer.concat([uint32(headers.size), ...pairs]));
  }

  /** The headers of a compressed block. @throws Error when it is damaged or too long */
  async decode(block: Uint8Array): Promise<SpdyHeaders> {
    const bytes = await pass(this.#inflate, block);
    let at = 0;
    const length = () => {
      if (at + 4 > bytes.length) throw new Error("a header block ends in the middle");
      at += 4;
      return bytes.readUInt32BE(at - 4);
    };
    const textHere = () => {
      const end = length() + at;
      if (end > bytes.length) throw new Error("a header block ends in the middle");
      const found = bytes.toString("utf8", at, end);
      at = end;
      return found;
    };
    const headers = new Map<string, string>();
    for (let left = length(); left > 0; left--) {
      const name = textHere();
      headers.set(name.toLowerCase(), textHere());
    }
    return headers;
  }

  close(): void {
    this.#deflate.close();
    this.#inflate.close();
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function lengthAndText(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint32(bytes.length), bytes]);
}

/** What comes out for these bytes, all of it. */
function pass(stream: Deflate | Inflate, bytes: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const end = (settle: () => void) => {
      stream.off("data", onData);
      stream.off("error", onError);
      settle();
    };
    const onError = (error: Error) => end(() => reject(error));
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length > blockBytesMax) stream.destroy(new Error("a header block is too long"));
      else chunks.push(chunk);
    };
    stream.on("data", onData);
    stream.on("error", onError);
    stream.write(bytes);
    stream.flush(constants.Z_SYNC_FLUSH, () => end(() => resolve(Buffer.concat(chunks))));
  });
}
