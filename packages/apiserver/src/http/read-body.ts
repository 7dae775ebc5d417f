/** Reads request bodies: bounded, then decoded. */

import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { excessOf } from "../api/bounded.ts";
import { apiError, badRequest, unsupportedMediaType } from "../api/errors.ts";
import { parseJson, parseTypedJson } from "../api/json.ts";
import { objectFromProtobuf } from "../schema/object-from-protobuf.ts";
import { duplicateFields } from "../schema/unknown-fields.ts";
import { readingSchema, yaml } from "./yaml.ts";

/** Longest body in bytes (apiserver MaxRequestBodyBytes). */
export const bodyBytesMax = 3 * 1024 * 1024;

/** The whole body. @throws KubeApiError 413 when it is too long */
export function readBody(request: IncomingMessage | Http2ServerRequest): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers["content-length"] ?? 0) > bodyBytesMax) throw tooLarge();
    const chunks: Buffer[] = [];
    let bytes = 0;
    // Listeners, because an iterator costs each request more than all of its parsing.
    const take = (chunk: Buffer) => {
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes <= bodyBytesMax) return;
      request.off("data", take);
      reject(tooLarge());
    };
    request.on("data", take);
    request.on("end", () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    request.on("error", reject);
    // Also comes after "end", when it has no effect.
    request.on("close", () => reject(new Error("the client went away before its request was whole")));
  });
}

function tooLarge(): Error {
  return apiError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${bodyBytesMax}`);
}

/**
 * The value that a body of this content type holds.
 * @param typed it is to be read as a type of the API, which may refuse a `WholeFraction`
 * @throws KubeApiError 400 or 415
 */
export function parseBody(body: Buffer, contentType: string, typed = false): unknown {
  const value = parse(body, contentType, typed);
  const excess = excessOf(value);
  if (excess !== undefined) throw badRequest(`the body of the request cannot be read: ${excess}`);
  return value;
}

function parse(body: Buffer, contentType: string, typed: boolean): unknown {
  if (contentType === "application/vnd.kubernetes.protobuf") return objectFromProtobuf(body);
  const text = body.toString("utf8");
  if (contentType === "application/yaml") {
    try {
      // A member that is there twice is no error: the last one counts, as in JSON.
      return yaml().load(text, { schema: readingSchema(), json: true });
    } catch (error) {
      throw badRequest(`the body is not YAML: ${(error as Error).message.split("\n")[0]}`);
    }
  }
  if (contentType !== "" && contentType !== "application/json" && !contentType.endsWith("+json")) {
    throw unsupportedMediaType([
      "application/json",
      "application/yaml",
      "application/vnd.kubernetes.protobuf",
    ]);
  }
  try {
    return typed ? parseTypedJson(text) : parseJson(text);
  } catch (error) {
    throw badRequest(`the body of the request is not JSON: ${(error as Error).message}`);
  }
}

/** What a strict decoder finds in the text of a body that has been read: members that are there twice. */
export function problemsOfText(body: Buffer, contentType: string, value: unknown): readonly string[] {
  if (contentType === "application/vnd.kubernetes.protobuf") return [];
  const text = body.toString("utf8");
  return contentType === "application/yaml" ? duplicatesInYaml(text) : duplicateFields(text, value);
}

/** The first member that is there twice, with its line: the reader stops at it. */
function duplicatesInYaml(text: string): readonly string[] {
  const { load, JSON_SCHEMA, YAMLException } = yaml();
  try {
    load(text, { schema: JSON_SCHEMA });
    return [];
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const line = (error.mark?.line ?? 0) + 1;
    const [, key = ""] = /^[\s-]*"?([^":]*)"?\s*:/.exec(text.split("\n")[line - 1] ?? "") ?? [];
    return [`line ${line}: key ${JSON.stringify(key)} already set in map`];
  }
}

/** The media type without its parameters, in lower case. */
export function mediaType(header: string | undefined): string {
  return (header ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}
