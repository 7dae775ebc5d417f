/** Lists, in pages when requested. */

import type { ListAnswer } from "../api/api-request.ts";
import { badRequest, expired } from "../api/errors.ts";
import { checkListOptions, futureVersion, listRevision } from "./check-list-options.ts";
import { type ContinueToken, decodeContinue, encodeContinue } from "./continue-token.ts";
import type { KindRequest, RegistryContext } from "./registry-context.ts";
import { selection } from "./selection.ts";

/** GET of a collection. */
export function listPage(context: RegistryContext, request: KindRequest): ListAnswer {
  const { store, version } = context;
  const { query, table, namespace } = request;
  checkListOptions(query, version);
  const selects = selection(request.of, query, undefined);
  const asked = listRevision(store.revision, query, version);
  const token = query.continue ? decodeContinue(query.continue) : undefined;
  if (token !== undefined && query.resourceVersion && query.resourceVersion !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  const revision = token === undefined ? asked : token.revision;
  if (revision !== undefined && revision > store.revision) {
    throw futureVersion(revision, store.revision, version);
  }
  // A list of any version comes from a cache in the reference, which knows no pages.
  const limit = query.resourceVersion === "0" && token === undefined ? 0 : (query.limit ?? 0);
  const prefix = keyPrefix(request);
  const page =
    limit <= 0 && revision === undefined && token === undefined && selects === undefined
      ? { items: table.list(namespace), remaining: 0 }
      : table.page({
          limit,
          ...(namespace === undefined ? {} : { namespace }),
          ...(revision === undefined ? {} : { revision }),
          ...(token === undefined ? {} : { after: `${prefix}${token.after}` }),
          selects,
        });
  if (page === undefined) {
    throw token === undefined
      ? expired(`The resourceVersion for the provided list is too old.`)
      : continueExpired(token);
  }
  const { items, last, remaining } = page;
  const at = revision ?? store.revision;
  if (last === undefined) return { type: "list", items, resourceVersion: String(at) };
  return {
    type: "list",
    items,
    resourceVersion: String(at),
    continue: encodeContinue({ revision: at, after: last.slice(prefix.length) }),
    // With a selector it is not known what is left (meta/v1 ListMeta, remainingItemCount).
    ...(selects === undefined ? { remaining } : {}),
  };
}

/** What all keys of the list begin with, and tokens leave out. */
function keyPrefix({ of, namespace }: KindRequest): string {
  if (!of.namespaced) return "/";
  return namespace === undefined ? "" : `${namespace}/`;
}

function continueExpired({ after }: ContinueToken): Error {
  const error = expired(
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
  );
  Object.assign(error.status, { metadata: { continue: encodeContinue({ revision: undefined, after }) } });
  return error;
}
