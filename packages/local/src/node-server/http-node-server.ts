/**
 * What a node answers to its API server: logs of containers, programs beside them, their ports, and the figures of volumes. The paths are those of a
 * kubelet. It listens on a unix socket of the cluster's directory, which only the cluster's own user may open: who is allowed
 * what, the API server has decided. Source: kubernetes pkg/kubelet/server.
 */
import { rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Informer, Pod, Stored } from "@longshore/kube";
import { type Clock, type Component, TaskGroup, underUmask, withDeadline } from "@longshore/runtime";
import type { ExecProcess, PodRuntime } from "../containers/pod-runtime.ts";
import { readLogFile } from "../containers/read-log-file.ts";
import { podLogFile } from "../containers/read-pod-logs.ts";
import { PortForwarder } from "./http-port-forward.ts";
import { expectedStreams, type RemoteStreams, runRemoteCommand } from "./remote-command.ts";
import { type SpdyConnection, type SpdyStream, serveSpdy } from "./spdy-connection.ts";
import type { StatsSummary } from "./stats-summary.ts";

/** What the node serves from. */
export interface NodeServices {
  readonly clock: Clock;
  readonly pods: Informer<Pod>;
  readonly runtime: PodRuntime;
  readonly logDir: string;
  /** The figures of the node, as measured last. It waits for no volume. */
  readonly stats: () => StatsSummary;
  readonly onError: (error: unknown) => void;
}

/** The node refuses a request: the code of the answer, and why. */
class NodeRefusal extends Error {
  override readonly name = "NodeRefusal";
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The container that a path names. */
interface Target {
  readonly verb: string;
  readonly pod: Stored<Pod>;
  readonly container: string;
  readonly params: URLSearchParams;
}

const summaryPath = "/stats/summary";
/** Protocols of streams, best first; the ends of programs are reported alike in all. */
const streamProtocols = ["v4.channel.k8s.io", "portforward.k8s.io"];
/** How long a client may take to open its streams, in milliseconds. */
const streamsTimeoutMs = 30_000;

/** Listens on the unix socket, with mode 0600; replaces one that is left from before. */
export async function startNodeServer(services: NodeServices, socketPath: string): Promise<Component> {
  const tasks = new TaskGroup(services.onError);
  const server = createServer((request, response) => {
    tasks.spawn((signal) => answer(services, request, response, signal));
  });
  const sockets = new Set<Duplex>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", () => {});
    tasks.spawn((signal) => answerUpgrade(services, request, socket, head, signal));
  });
  await rm(socketPath, { force: true });
  await underUmask(
    0o177,
    () =>
      new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen(socketPath, resolve);
      }),
  );
  return {
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await tasks.stop();
    },
  };
}

async function answer(
  services: NodeServices,
  request: IncomingMessage,
  response: ServerResponse,
  stopped: AbortSignal,
): Promise<void> {
  try {
    if (new URL(request.url ?? "", "http://node").pathname === summaryPath) {
      const summary = JSON.stringify(services.stats());
      response.writeHead(200, { "content-type": "application/json" }).end(summary);
      return;
    }
    const target = targetOf(services, request.url ?? "");
    if (target.verb !== "containerLogs")
      throw new NodeRefusal(400, "the request must be upgraded to SPDY/3.1");
    const ended = new AbortController();
    response.on("close", () => ended.abort());
    const signal = AbortSignal.any([stopped, ended.signal]);
    const log = await logOf(services, target, signal);
    response.writeHead(200, { "content-type": "text/plain" });
    response.flushHeaders();
    for await (const bytes of log) {
      if (!response.write(bytes))
        await new Promise<void>((resolve) => response.once("drain", resolve).once("close", resolve));
      if (signal.aborted) return;
    }
    response.end();
  } catch (error) {
    if (response.headersSent) response.destroy();
    else refuse(response, error);
  }
}

function refuse(response: ServerResponse, error: unknown): void {
  const code = error instanceof NodeRefusal ? error.code : 500;
  response.writeHead(code, { "content-type": "text/plain" });
  response.end(error instanceof Error ? error.message : String(error));
}

/** `/VERB/NAMESPACE/POD/CONTAINER`. @throws NodeRefusal */
function targetOf({ pods }: NodeServices, url: string): Target {
  const { pathname, searchParams: params } = new URL(url, "http://node");
  const [, verb = "", namespace = "", name = "", container = ""] = pathname
    .split("/")
    .map(decodeURIComponent);
  const pod = pods.get(`${namespace}/${name}`);
  if (pod === undefined)
    throw new NodeRefusal(404, `pod "${name}" in namespace "${namespace}" is not on this node`);
  const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  if (container !== "" && !all.some((one) => one.name === container)) {
    throw new NodeRefusal(404, `container "${container}" is not in pod "${name}"`);
  }
  return { verb, pod, container, params };
}

/** The asked part of the log of a container's last run, or of the run before. @throws NodeRefusal */
async function logOf(
  { clock, runtime, logDir }: NodeServices,
  { pod, container, params }: Target,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  if (isTrue(params, "timestamps") || params.has("sinceSeconds") || params.has("sinceTime")) {
    throw new NodeRefusal(
      400,
      "local nodes record no times of lines: leave out `timestamps`, `sinceSeconds` and `sinceTime`",
    );
  }
  const { uid } = pod.metadata;
  const state = (await runtime.state(uid, signal)).get(container);
  const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  const last = state?.attempt ?? statuses.find(({ name }) => name === container)?.restartCount ?? 0;
  const isPrevious = isTrue(params, "previous");
  if (isPrevious && last === 0) {
    throw new NodeRefusal(
      400,
      `previous terminated container "${container}" in pod "${pod.metadata.name}" not found`,
    );
  }
  if (
    state === undefined &&
    statuses.find(({ name }) => name === container)?.state?.terminated === undefined
  ) {
    const reason =
      statuses.find(({ name }) => name === container)?.state?.waiting?.reason ?? "ContainerCreating";
    throw new NodeRefusal(
      400,
      `container "${container}" in pod "${pod.metadata.name}" is waiting to start: ${reason}`,
    );
  }
  const attempt = isPrevious ? last - 1 : last;
  const named = { namespace: pod.metadata.namespace ?? "default", name: pod.metadata.name, uid };
  const path = podLogFile(logDir, named, container, attempt);
  const hasEnded = async () => {
    const now = (await runtime.state(uid, signal)).get(container);
    return now?.kind !== "running" || now.attempt !== attempt;
  };
  const tailLines = numberOf(params, "tailLines");
  const limitBytes = numberOf(params, "limitBytes");
  const query = {
    follow: isTrue(params, "follow") && !isPrevious,
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
  };
  return readLogFile(clock, path, query, hasEnded, signal);
}

function isTrue(params: URLSearchParams, name: string): boolean {
  return params.get(name) === "true" || params.get(name) === "1";
}

/** @throws NodeRefusal */
function numberOf(params: URLSearchParams, name: string): number | undefined {
  const text = params.get(name);
  if (text === null) return undefined;
  if (!/^[0-9]{1,15}$/.test(text)) throw new NodeRefusal(400, `${name}: "${text}" is not a number`);
  return Number(text);
}

async function answerUpgrade(
  services: NodeServices,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  stopped: AbortSignal,
): Promise<void> {
  try {
    if (request.headers.upgrade?.toLowerCase() !== "spdy/3.1") {
      throw new NodeRefusal(400, "local nodes speak SPDY/3.1 alone");
    }
    const target = targetOf(services, request.url ?? "");
    const offered = String(request.headers["x-stream-protocol-version"] ?? "").split(/, */);
    const protocol = streamProtocols.find((one) => offered.includes(one));
    if (protocol === undefined)
      throw new NodeRefusal(403, `unable to upgrade: none of ${offered.join(", ")} is spoken`);
    const begin = target.verb === "portForward" ? forwardPorts : await beginProgram(services, target);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
    );
    await begin(services, socket, head, stopped);
  } catch (error) {
    const code = error instanceof NodeRefusal ? error.code : 500;
    const text = error instanceof Error ? error.message : String(error);
    const length = Buffer.byteLength(text);
    socket.end(
      `HTTP/1.1 ${code} Refused\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n${text}`,
    );
  }
}

type Serve = (services: NodeServices, socket: Duplex, head: Buffer, stopped: AbortSignal) => Promise<void>;

const forwardPorts: Serve = async (_services, socket, head, stopped) => {
  const ports = new PortForwarder();
  const connection = serveSpdy(socket, head, (stream) => ports.take(stream));
  await untilClosed(connection, socket, stopped);
};

async function untilClosed(connection: SpdyConnection, socket: Duplex, stopped: AbortSignal): Promise<void> {
  const cut = () => socket.destroy();
  stopped.addEventListener("abort", cut, { once: true });
  await connection.closed;
  stopped.removeEventListener("abort", cut);
}

/** @throws NodeRefusal where the container does not run, or nothing is served at the path */
async function beginProgram(services: NodeServices, target: Target): Promise<Serve> {
  const { verb, pod, container, params } = target;
  if (verb !== "exec" && verb !== "attach") throw new NodeRefusal(404, "nothing is served there");
  const { signal } = new AbortController();
  const state = (await services.runtime.state(pod.metadata.uid, signal)).get(container);
  if (state?.kind !== "running") {
    throw new NodeRefusal(400, `container "${container}" of pod "${pod.metadata.name}" does not run`);
  }
  const wanted: RemoteStreams = {
    stdin: isTrue(params, "stdin") || isTrue(params, "input"),
    stdout: isTrue(params, "stdout") || isTrue(params, "output"),
    stderr: isTrue(params, "stderr") || isTrue(params, "error"),
    tty: isTrue(params, "tty"),
  };
  return async ({ clock, runtime }, socket, head, stopped) => {
    const streams = new Map<string, SpdyStream>();
    let onStream = () => {};
    const connection = serveSpdy(socket, head, (stream) => {
      streams.set(stream.headers.get("streamtype") ?? "", stream);
      onStream();
    });
    const ended = new AbortController();
    void connection.closed.then(() => ended.abort());
    const within = AbortSignal.any([stopped, ended.signal]);
    const areThere = () => expectedStreams(wanted).every((type) => streams.has(type));
    await withDeadline(clock, streamsTimeoutMs, within, async (until) => {
      while (!areThere()) {
        await new Promise<void>((resolve, reject) => {
          onStream = resolve;
          until.addEventListener("abort", () => reject(until.reason), { once: true });
        });
      }
    }).catch(() => socket.destroy());
    if (!socket.destroyed) {
      const request = {
        podUID: pod.metadata.uid,
        containerName: container,
        argv: params.getAll("command"),
        signal: within,
      };
      const start = verb === "exec" ? () => runtime.exec(request) : () => attached(services, target, within);
      await runRemoteCommand(streams, start);
      await connection.close();
    }
  };
}

/** The output of the container from now on. A container of a local node has no standard input. */
async function attached(services: NodeServices, target: Target, signal: AbortSignal): Promise<ExecProcess> {
  const params = new URLSearchParams({ follow: "true", tailLines: "0" });
  const stdout = await logOf(services, { ...target, params }, signal);
  async function* nothing(): AsyncGenerator<Uint8Array> {}
  return { async write() {}, endInput() {}, stdout, stderr: nothing(), exitCode: Promise.resolve(0) };
}
