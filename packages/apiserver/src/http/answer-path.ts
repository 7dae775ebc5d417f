/** What is served at paths that are no resources: health, version, discovery, OpenAPI. One table, the first match answers. */
import { unknownResource } from "../api/errors.ts";
import { aggregatedAnswer } from "./aggregated-discovery.ts";
import { type CachedDocument, sendDocument } from "./cached-documents.ts";
import { compactEndpoint } from "./compact-endpoint.ts";
import { coreVersions, groupList, oneGroup, resourceList, rootPaths, versionDocument } from "./discovery.ts";
import { header } from "./exchange.ts";
import { healthEndpoints } from "./health-endpoints.ts";
import { metricsEndpoint } from "./metrics-endpoint.ts";
import { checkReads, type PathCall, type PathEndpoint } from "./path-endpoint.ts";
import { send, sendJson, sendPageNotFound } from "./respond.ts";
import { tokenKeyEndpoints } from "./token-key-endpoints.ts";

/** Answers a request for a non-resource path. @throws KubeApiError 404, 405 */
export async function answerPath(call: Omit<PathCall, "context">): Promise<void> {
  const context = call.server.registry.context;
  const bare = call.path.length > 1 ? call.path.replace(/(?<=[^/])\/+$/, "") : call.path;
  for (const endpoint of pathEndpoints) {
    const path = endpoint.takesSlashes === true ? bare : call.path;
    const isMeant = typeof endpoint.path === "string" ? endpoint.path === path : endpoint.path.test(path);
    if (isMeant) return endpoint.answer({ ...call, context, path });
  }
  sendPageNotFound(call.request, call.response);
}

/** Every path that is no resource; others add theirs here. */
const pathEndpoints: readonly PathEndpoint[] = [
  ...healthEndpoints,
  ...tokenKeyEndpoints,
  compactEndpoint,
  metricsEndpoint,
  { path: "/openapi/v2", answer: version2 },
  { path: /^\/openapi\/v3/, takesSlashes: true, answer: version3 },
  document("/", ({ context }) => rootPaths(context.kinds, context.version)),
  document("/version", ({ context }) => versionDocument(context.version)),
  aggregated(
    "/api",
    document("/api", ({ request }) =>
      coreVersions(header(request, "host") ?? header(request, ":authority") ?? ""),
    ),
  ),
  aggregated(
    "/apis",
    document("/apis", ({ context }) => groupList(context.kinds)),
  ),
  document(/^\/api\/[^/]+$/, ({ context, path }) =>
    resourceList(context.kinds, "", path.slice("/api/".length), context.version),
  ),
  document(/^\/apis\/[^/]+$/, ({ context, path }) => oneGroup(context.kinds, path.slice("/apis/".length))),
  document(/^\/apis\/[^/]+\/[^/]+$/, ({ context, path }) => {
    const [group = "", version = ""] = path.slice("/apis/".length).split("/");
    return resourceList(context.kinds, group, version, context.version);
  }),
];

/** An endpoint that answers GET with a document, or 404 where there is none. */
function document(path: string | RegExp, make: (call: PathCall) => object | undefined): PathEndpoint {
  return {
    path,
    takesSlashes: true,
    answer(call) {
      const made = make(call);
      if (made === undefined) return notThere(call);
      checkReads(call);
      sendJson(call.request, call.response, made);
    },
  };
}

/** The endpoint, and for clients that ask for it all that is below it in one document. */
function aggregated(path: "/api" | "/apis", plain: PathEndpoint): PathEndpoint {
  return {
    path,
    takesSlashes: true,
    answer(call) {
      const { context, request, response } = call;
      const root = path === "/api" ? "api" : "apis";
      const answer = aggregatedAnswer(context.kinds, context.version, root, header(request, "accept"));
      if (answer === undefined) return plain.answer(call);
      sendDocument(request, response, answer);
    },
  };
}

/** A version of a group that is served in others is an unknown resource; anything else is a page not found. */
function notThere({ context, path, request, response }: PathCall): void {
  const [, root = "", group = ""] = path.split("/");
  const isKnown =
    (root === "api" || root === "apis") && context.kinds.all().some((kind) => kind.group === group);
  if (isKnown) throw unknownResource();
  sendPageNotFound(request, response);
}

/** Loaded with the first request for a document: the server is there the sooner. */
const openApi = () => import("./openapi.ts");

async function version2({ context, request, response }: PathCall): Promise<void> {
  const { openApiV2 } = await openApi();
  sendDocument(request, response, openApiV2(context.kinds, context.version, header(request, "accept")));
}

/** The index, or the document of one group version; an address that names another content leads to the one there is. */
async function version3(call: PathCall): Promise<void> {
  const { context, params, path, request, response } = call;
  const { kinds, version } = context;
  if (!version.has("openapiV3")) {
    send(request, response, 404, JSON.stringify(rootPaths(kinds, version)), "application/json");
    return;
  }
  const document = await documentOfVersion3(call);
  const hash = params.get("hash");
  if (document === undefined) sendPageNotFound(request, response);
  else if (hash === null) sendDocument(request, response, document);
  else if (hash === document.hash) {
    sendDocument(request, response, document, { "cache-control": "public, immutable" });
  } else send(request, response, 301, "", "text/plain", { location: `${path}?hash=${document.hash}` });
}

async function documentOfVersion3({ context, path }: PathCall): Promise<CachedDocument | undefined> {
  const { openApiV3, openApiV3Index } = await openApi();
  const { kinds, version } = context;
  if (path === "/openapi/v3") return openApiV3Index(kinds, version);
  const [, root, first = "", second = ""] =
    /^\/openapi\/v3\/(apis?)\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  if (root === undefined) return undefined;
  return root === "api" ? openApiV3(kinds, version, "", first) : openApiV3(kinds, version, first, second);
}
