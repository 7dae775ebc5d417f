/** The beginning of watches. */
import type { KubeObject, Stored } from "@longshore/kube";
import type { WatchAnswer, WatchItem, WatchStream } from "../api/api-request.ts";
import { expired } from "../api/errors.ts";
import { TableWatch } from "../watch/table-watch.ts";
import { checkReached, checkWatchOptions, parseVersion } from "./check-list-options.ts";
import type { KindRequest, RegistryContext } from "./registry-context.ts";
import { selection } from "./selection.ts";

/**
 * Answers GET with `watch=true`: the changes after the requested version, after the present state where the client asks
 * for it. A version that is too old opens a stream whose only event is the error (410).
 *
 * @throws KubeApiError for options that are not valid, or a streamed list of a version that is not reached yet
 */
export function startWatch(context: RegistryContext, request: KindRequest): WatchAnswer {
  const { store, watches } = context;
  const { query, table, namespace } = request;
  const selects = selection(request.of, query, request.name) ?? (() => true);
  const inNamespace =
    namespace === undefined
      ? selects
      : (object: Stored) => object.metadata.namespace === namespace && selects(object);
  checkWatchOptions(query, context.version);
  const version = parseVersion(query.resourceVersion || "0");
  // Under a version without streamed lists the parameter is not known.
  const sendInitialEvents = context.version.has("watchList") ? query.sendInitialEvents : undefined;
  if (sendInitialEvents !== undefined) checkReached(store.revision, query.resourceVersion);
  const withState = sendInitialEvents ?? version === 0;
  // What is not durable yet comes as a change later, or never.
  const from = withState || version === 0 ? store.readableRevision : version;
  const position = table.positionAfter(from);
  if (position === undefined) {
    // The stream opens nevertheless, with this error as its only event.
    const error = expired(`too old resource version: ${from} (${store.revision})`);
    return { type: "watch", stream: failedStream(error.status as KubeObject) };
  }
  const stream = new TableWatch({
    store,
    table,
    position,
    initial: !withState
      ? undefined
      : { namespace, marksEnd: sendInitialEvents === true && query.allowWatchBookmarks === true },
    selects: inNamespace,
    revision: from,
  });
  watches.add(stream, query);
  return { type: "watch", stream };
}

function failedStream(status: KubeObject): WatchStream {
  const items: WatchItem[] = [{ type: "ERROR", status }];
  return {
    onLost: () => {},
    take: () => items.pop() ?? "ended",
    next: async () => items.pop(),
    close: () => void items.pop(),
  };
}
