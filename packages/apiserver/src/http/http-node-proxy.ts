/**
 * Requests that a node answers: the log of a pod, programs beside its containers, its ports, and the node's own figures. They have
 * been authorized as `pods/log`, `pods/exec`, `pods/attach`, `pods/portforward` and `nodes/proxy`; what is passed on says nothing
 * of the user. Source: kubernetes pkg/registry/core/pod/rest, core/node/rest, apimachinery proxy.UpgradeAwareHandler.
 */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import type { Duplex } from "node:stream";
import { KubeApiError } from "@longshore/kube/basics";
import { type Clock, errorChain, type RuntimeEnv, withDeadline } from "@longshore/runtime/basics";
import { apiError, badRequest, notFound, unknownResource } from "../api/errors.ts";
import type { Loose, LooseObject } from "../registry/kinds/shaping.ts";
import type { Registry } from "../registry/registry.ts";
import type { Response } from "./exchange.ts";
import type { ParsedRequest, ResourceRequest } from "./parsed-request.ts";

/** The unix socket of a node; undefined: it has none. */
export type NodeSocket = (nodeName: string) => string | undefined;

/** A request for a node. */
export interface NodeCall {
  readonly clock: Clock;
  readonly registry: Registry;
  readonly nodeSocket: NodeSocket | undefined;
  readonly parsed: ParsedRequest;
  readonly params: URLSearchParams;
}

/** The paths of a node, by the sub-resource of the pod. */
const nodeVerbs: Readonly<Record<string, string>> = {
  log: "containerLogs",
  exec: "exec",
  attach: "attach",
  portforward: "portForward",
};

/** What of an upgrade request a node is to know. */
const passedHeaders = [
  "connection",
  "upgrade",
  "x-stream-protocol-version",
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-protocol",
];
/** Browsers send a token among the protocols: it is a secret, and no node's business (apiserver authentication/request/websocket). */
const tokenProtocolPrefix = "base64url.bearer.authorization.k8s.io.";

/** Whether it asks for a pod's log. */
export function isPodLog(request: ParsedRequest): request is ResourceRequest {
  return isOfPod(request) && request.asked.subresource === "log" && request.asked.verb === "get";
}

/** What of a node the right to `nodes/proxy` reaches: figures alone, so that it gives no logs and no programs (docs/decisions/0006). Each with the type of its content. */
const proxiedPaths: ReadonlyMap<string, string> = new Map([
  ["stats/summary", "application/json"],
  ["metrics", "text/plain; version=0.0.4; charset=utf-8"],
]);

/** Whether it asks for a node's figures, through `nodes/NAME/proxy/`. */
export function isNodeProxy(request: ParsedRequest): request is ResourceRequest {
  if (request.type !== "resource" || !proxiedPaths.has(request.below)) return false;
  const { verb, group, version, resource, namespace, name, subresource } = request.asked;
  const isProxy = verb === "get" && resource === "nodes" && subresource === "proxy" && name !== undefined;
  return isProxy && group === "" && version === "v1" && namespace === undefined;
}

function isOfPod(request: ParsedRequest): request is ResourceRequest {
  if (request.type !== "resource") return false;
  const { group, version, resource, namespace, name } = request.asked;
  const isPod = group === "" && version === "v1" && resource === "pods";
  return isPod && namespace !== undefined && name !== undefined;
}

/** Where the request goes. */
interface NodeTarget {
  readonly socketPath: string;
  readonly path: string;
}

/** @throws KubeApiError 400 for a pod without a node or a container that it does not have, 404, 503 */
function podTargetOf({ registry, nodeSocket, parsed, params }: NodeCall): NodeTarget {
  const { namespace = "", name = "", subresource = "" } = parsed.type === "resource" ? parsed.asked : {};
  const verb = Object.hasOwn(nodeVerbs, subresource) ? nodeVerbs[subresource] : undefined;
  if (verb === undefined || !isOfPod(parsed)) throw unknownResource();
  const kind = registry.context.kinds.find("", "pods");
  const pod = kind === undefined ? undefined : registry.read(kind, namespace, name);
  if (pod === undefined) throw notFound({ group: "", resource: "pods" }, name);
  const { nodeName = "" } = (pod as LooseObject).spec ?? {};
  if (nodeName === "") throw badRequest(`pod ${name} does not have a host assigned`);
  const socketPath = socketOf(nodeSocket, String(nodeName));
  const container = verb === "portForward" ? [] : [containerOf(pod as LooseObject, name, params)];
  const parts = [verb, namespace, name, ...container].map(encodeURIComponent);
  return { socketPath, path: `/${parts.join("/")}?${params}` };
}

/** @throws KubeApiError 404, 503 */
function nodeTargetOf({ registry, nodeSocket, parsed, params }: NodeCall): NodeTarget {
  if (parsed.type !== "resource") throw unknownResource();
  const { name = "" } = parsed.asked;
  const kind = registry.context.kinds.find("", "nodes");
  if (kind === undefined || registry.read(kind, "", name) === undefined) {
    throw notFound({ group: "", resource: "nodes" }, name);
  }
  return { socketPath: socketOf(nodeSocket, name), path: `/${parsed.below}?${params}` };
}

/** @throws KubeApiError 503 */
function socketOf(nodeSocket: NodeSocket | undefined, nodeName: string): string {
  const socketPath = nodeSocket?.(nodeName);
  if (socketPath !== undefined) return socketPath;
  throw apiError(503, "ServiceUnavailable", `node ${nodeName} has no address that this API server knows`);
}

const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container";

/** @throws KubeApiError 400 where it is not one of the pod's */
function containerOf(pod: LooseObject, name: string, params: URLSearchParams): string {
  const names = ["initContainers", "containers", "ephemeralContainers"].map((list) =>
    ((pod.spec?.[list] ?? []) as readonly Loose[]).map((container) => String(container.name)),
  );
  const [init = [], main = [], ephemeral = []] = names;
  const asked = params.get("container") ?? "";
  if (asked === "") {
    const preferred = pod.metadata?.annotations?.[defaultContainerAnnotation];
    const chosen = main.length === 1 ? main[0] : main.find((one) => one === preferred);
    if (chosen !== undefined) return chosen;
    throw badRequest(
      `a container name must be specified for pod ${name}, choose one of: [${main.join(" ")}]${init.length === 0 ? "" : ` or one of the init containers: [${init.join(" ")}]`}`,
    );
  }
  if ([...init, ...main, ...ephemeral].includes(asked)) return asked;
  throw badRequest(`container ${asked} is not valid for pod ${name}`);
}

/** How long a node may take to begin its answer, in milliseconds. What follows takes as long as the client stays. */
const answerTimeoutMs = 30_000;

/** What the node has answered with: its headers, or another protocol. */
interface NodeAnswer {
  readonly answer: IncomingMessage;
  /** The connection, where the protocol has changed, and what has arrived on it. */
  readonly upgraded?: { readonly node: Duplex; readonly head: Buffer };
}

/** Asks the node. @throws KubeApiError 503 when it does not begin to answer in time; what it refuses with */
async function askNode(
  call: NodeCall,
  target: NodeTarget,
  options: Pick<RequestOptions, "method" | "headers">,
  left: AbortSignal,
): Promise<NodeAnswer> {
  return withDeadline(call.clock, answerTimeoutMs, left, async (signal) => {
    const asked = httpRequest({ ...target, ...options, signal, agent: false });
    const given = await new Promise<NodeAnswer>((resolve, reject) => {
      asked.on("error", (error) => reject(unreachable(signal.aborted ? signal.reason : error)));
      asked.on("response", (answer) => resolve({ answer }));
      asked.on("upgrade", (answer, node, head) => resolve({ answer, upgraded: { node, head } }));
      asked.end();
    });
    const { statusCode = 500 } = given.answer;
    if (given.upgraded !== undefined || statusCode === 200) return given;
    throw refusal(statusCode, await readText(given.answer));
  });
}

/** Answers with the log as the node sends it; resolves when it has ended, or the client has left. @throws KubeApiError */
export function passLog(call: NodeCall, response: Response): Promise<void> {
  return passRead(call, podTargetOf(call), "text/plain", response);
}

/** Answers with the node's figures; resolves when they are sent, or the client has left. @throws KubeApiError */
export function passNodeProxy(call: NodeCall, response: Response): Promise<void> {
  const { below = "" } = call.parsed.type === "resource" ? call.parsed : {};
  return passRead(call, nodeTargetOf(call), proxiedPaths.get(below) ?? "text/plain", response);
}

async function passRead(
  call: NodeCall,
  target: NodeTarget,
  contentType: string,
  response: Response,
): Promise<void> {
  const left = new AbortController();
  const closed = new Promise<void>((resolve) => response.on("close", resolve));
  void closed.then(() => left.abort());
  try {
    const { answer } = await askNode(call, target, { method: "GET" }, left.signal);
    response.writeHead(200, { "content-type": contentType });
    answer.pipe(response as NodeJS.WritableStream);
    answer.on("error", () => response.end());
    await closed;
    answer.destroy();
  } catch (error) {
    if (!left.signal.aborted) throw error;
  }
}

const upgradedSubresources: ReadonlySet<string> = new Set(["exec", "attach", "portforward"]);

/** SPDY is asked for with POST, a WebSocket with GET (RFC 6455, 4.1). */
function methodOfUpgrade({ headers }: IncomingMessage): "GET" | "POST" {
  return headers.upgrade?.toLowerCase() === "websocket" ? "GET" : "POST";
}

/**
 * The request that has to be allowed beside the one that was sent, for a program to be started: with the right to get or to
 * delete `pods/exec` alone none is. A WebSocket begins with GET, whose verb is `get`, and asks for `create` too, in every version
 * (the reference: from 1.35 on, AuthorizePodWebsocketUpgradeCreatePermission).
 *
 * @throws KubeApiError 400 for any other request
 */
export function upgradeAsCreation(parsed: ParsedRequest, request: IncomingMessage): ResourceRequest {
  const isKnown = isOfPod(parsed) && upgradedSubresources.has(parsed.asked.subresource ?? "");
  if (!isKnown || request.method !== methodOfUpgrade(request)) {
    throw badRequest(
      "only exec, attach and portforward of a pod are upgraded: POST to SPDY/3.1, GET to a WebSocket",
    );
  }
  return { ...parsed, asked: { ...parsed.asked, verb: "create" } };
}

/** Connects the client with the node, which speaks the protocol. @throws KubeApiError before anything is sent */
export async function passUpgrade(
  call: NodeCall,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const target = podTargetOf(call);
  const headers: Record<string, string> = {};
  for (const name of passedHeaders) {
    const value = request.headers[name];
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  const protocols = headers["sec-websocket-protocol"];
  if (protocols !== undefined) headers["sec-websocket-protocol"] = withoutTokens(protocols);
  const left = new AbortController();
  socket.on("close", () => left.abort());
  const options = { method: methodOfUpgrade(request), headers };
  const { answer, upgraded } = await askNode(call, target, options, left.signal);
  if (upgraded === undefined) throw apiError(500, "InternalError", "the node has not changed the protocol");
  const { node, head: nodeHead } = upgraded;
  const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
  if (nodeHead.length > 0) socket.write(nodeHead);
  if (head.length > 0) node.write(head);
  node.on("error", () => socket.destroy());
  node.on("close", () => socket.end());
  socket.on("close", () => node.destroy());
  node.pipe(socket);
  socket.pipe(node);
}

function withoutTokens(protocols: string): string {
  const offered = protocols.split(",").map((one) => one.trim());
  return offered.filter((one) => !one.startsWith(tokenProtocolPrefix)).join(", ");
}

/** Answers with the failure, and closes. */
export function refuseUpgrade(env: RuntimeEnv, socket: Duplex, error: unknown): void {
  const isRefused = error instanceof KubeApiError;
  if (!isRefused) env.logger.error("an upgrade failed", { error: errorChain(error) });
  writeStatus(socket, isRefused ? error : apiError(500, "InternalError", "the request could not be handled"));
}

function writeStatus(socket: Duplex, { code, status }: KubeApiError): void {
  const body = JSON.stringify(status);
  const length = Buffer.byteLength(body);
  socket.end(
    `HTTP/1.1 ${code} Refused\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
  );
}

function refusal(code: number, text: string): KubeApiError {
  return code === 400 ? badRequest(text) : apiError(code, code === 404 ? "NotFound" : "", text);
}

function unreachable(error: Error): KubeApiError {
  return apiError(503, "ServiceUnavailable", `the node does not answer: ${error.message}`);
}

const refusalBytesMax = 64 * 1024;

async function readText(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of answer) {
    text += String(chunk);
    if (text.length > refusalBytesMax) break;
  }
  return text;
}
