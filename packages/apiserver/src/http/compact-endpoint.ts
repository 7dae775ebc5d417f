/**
 * `POST /compact?revision=N`: the server forgets every version before N, as the reference does when its etcd is compacted:
 * lists and watches that begin there are answered 410. Only administrators may do this, unless a role names the path.
 */
import { badRequest, methodNotAllowed } from "../api/errors.ts";
import type { PathCall, PathEndpoint } from "./path-endpoint.ts";
import { sendJson } from "./respond.ts";

/** The endpoint `/compact`, which drops old versions. */
export const compactEndpoint: PathEndpoint = { path: "/compact", answer: compact };

function compact({ context, method, params, request, response }: PathCall): void {
  if (method !== "POST") throw methodNotAllowed();
  const { store } = context;
  const given = params.get("revision");
  const revision = given === null ? store.readableRevision : Number(given);
  if (!Number.isSafeInteger(revision) || revision < 1 || revision > store.readableRevision) {
    throw badRequest(
      `revision: ${JSON.stringify(given)} is not a version of this server: give one from 1 to ${store.readableRevision}`,
    );
  }
  store.compact(revision);
  sendJson(request, response, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    code: 200,
  });
}
