/** Streams a watch: one line of JSON or one frame of protobuf an event. Nothing is buffered beyond what the socket takes. */
import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { WatchStream } from "../api/api-request.ts";
import { protobufType } from "../schema/object-to-protobuf.ts";
import type { RenderContext } from "./render-context.ts";
import { bookmarkObject, renderEvent } from "./render-object.ts";

type Response = ServerResponse | Http2ServerResponse;

/** Most bytes written in one piece. */
const pieceBytesMax = 64 * 1024;

/** Writes the stream's events until it ends or the client disconnects. */
export async function respondWithWatch(
  response: Response,
  stream: WatchStream,
  context: Omit<RenderContext, "now">,
  now: () => Date,
): Promise<void> {
  const gone = new Promise<"gone">((resolve) => {
    response.on("close", () => resolve("gone"));
    response.on("error", () => resolve("gone"));
  });
  void gone.then(() => stream.close());
  // A client that does not read holds one piece; when it could not go on anyway, not even that.
  stream.onLost = () => cut(response);
  const type = context.form.encoding === "protobuf" ? `${protobufType};stream=watch` : "application/json";
  response.writeHead(200, { "content-type": type, "cache-control": "no-cache, private" });
  // A client waits for the headers, and the first event may be long in coming.
  (response as ServerResponse).flushHeaders?.();
  let first = true;
  let piece: Uint8Array[] = [];
  let bytes = 0;
  for (let item = await stream.next(); item !== undefined; ) {
    const object =
      item.type === "BOOKMARK"
        ? bookmarkObject(item, context as RenderContext)
        : item.type === "ERROR"
          ? item.status
          : item.object;
    for (const part of renderEvent(item.type, object, { ...context, now: now() }, first)) {
      piece.push(part);
      bytes += part.length;
    }
    first = false;
    const more = bytes < pieceBytesMax ? stream.take() : undefined;
    if (more !== undefined && more !== "ended") {
      item = more;
      continue;
    }
    // The place in the log waits while the socket is full.
    if (!(response as ServerResponse).write(Buffer.concat(piece, bytes))) {
      const drained = new Promise<"drained">((resolve) => {
        (response as ServerResponse).once("drain", () => resolve("drained"));
      });
      if ((await Promise.race([drained, gone])) === "gone") return;
    }
    piece = [];
    bytes = 0;
    item = more === "ended" ? undefined : await stream.next();
  }
  response.end();
}

function cut(response: Response): void {
  if ("stream" in response && response.stream !== undefined) response.stream.destroy();
  else (response as ServerResponse).destroy();
}
