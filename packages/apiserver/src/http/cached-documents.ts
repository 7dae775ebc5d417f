/**
 * Documents about the kinds that are served, made at the first request and cached until the kinds change: as text,
 * compressed, and with an ETag, so that a client with the current document gets 304.
 */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { KindTable } from "../api/kind-table.ts";
import { header, type Request, type Response } from "./exchange.ts";
import { send } from "./respond.ts";

/** A document as it goes over the wire. */
export interface CachedDocument {
  readonly bytes: Buffer;
  readonly type: string;
  /** SHA-512 of the bytes, in upper-case hex. */
  readonly hash: string;
  /** The bytes compressed, made when first requested. */
  readonly gzipped: () => Buffer;
}

const made = new WeakMap<KindTable, Map<string, CachedDocument>>();

/** The document of that name, made by `make` unless it is there. */
export function cachedDocument(
  kinds: KindTable,
  name: string,
  make: () => { readonly content: string | Uint8Array; readonly type: string },
): CachedDocument {
  let documents = made.get(kinds);
  if (documents === undefined) {
    const fresh = new Map<string, CachedDocument>();
    documents = fresh;
    made.set(kinds, fresh);
    kinds.onChange(() => fresh.clear());
  }
  let document = documents.get(name);
  if (document === undefined) {
    document = newDocument(make());
    documents.set(name, document);
  }
  return document;
}

function newDocument({ content, type }: { content: string | Uint8Array; type: string }): CachedDocument {
  const bytes = Buffer.from(content as string);
  let gzipped: Buffer | undefined;
  return {
    bytes,
    type,
    hash: createHash("sha512").update(bytes).digest("hex").toUpperCase(),
    gzipped() {
      gzipped ??= gzipSync(bytes, { level: 4 });
      return gzipped;
    },
  };
}

/** Documents longer than this many bytes are compressed where the client takes it. */
const gzipBytesMin = 1024;

/** Answers with the document, or with 304 when the client has it. */
export function sendDocument(
  request: Request,
  response: Response,
  document: CachedDocument,
  headers: Readonly<Record<string, string>> = {},
): void {
  const etag = `"${document.hash}"`;
  const all = { etag, vary: "Accept-Encoding, Accept", ...headers };
  const known = (header(request, "if-none-match") ?? "")
    .split(",")
    // If-None-Match compares weakly (RFC 9110, section 13.1.2).
    .map((tag) => tag.trim().replace(/^W\//, ""));
  if (known.includes(etag)) {
    send(request, response, 304, "", document.type, all);
    return;
  }
  const compress =
    document.bytes.length > gzipBytesMin && /\bgzip\b/.test(header(request, "accept-encoding") ?? "");
  const encoding: Record<string, string> = compress ? { "content-encoding": "gzip" } : {};
  const bytes = compress ? document.gzipped() : document.bytes;
  send(request, response, 200, bytes, document.type, { ...all, ...encoding });
}
