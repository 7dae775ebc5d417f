/**
 * Requests that change the protocol of their connection: programs beside containers, and their ports, over SPDY/3.1 or over a
 * WebSocket. Source: kubernetes pkg/kubelet/server; KEP-4006.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { ExecProcess } from "../containers/pod-runtime.ts";
import { logOf } from "./container-log.ts";
import { PortForwarder } from "./http-port-forward.ts";
import {
  channelProtocols,
  offeredProtocols,
  openChannels,
  openTunnel,
  tunnelProtocol,
} from "./http-web-socket.ts";
import { isTrue, NodeRefusal, type NodeServices, type NodeTarget, targetOf } from "./node-request.ts";
import { expectedStreams, type RemoteStreams, runRemoteCommand } from "./remote-command.ts";
import type { RemoteConnection } from "./remote-stream.ts";
import { serveSpdy } from "./spdy-connection.ts";
import { openProgramStreams } from "./spdy-program-streams.ts";

/** A request of which the client expects that the connection's protocol changes. */
export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What has arrived after it. */
  readonly head: Buffer;
  /** Ends what is served. */
  readonly stopped: AbortSignal;
}

/** One of the two ways to carry streams. */
interface Carrier {
  /** Opens streams of these types. @throws Error when they cannot be opened */
  openStreams(types: readonly string[]): Promise<RemoteConnection>;
  /** Opens a connection of SPDY. */
  openSpdy(): Promise<{ readonly socket: Duplex; readonly head: Uint8Array }>;
}

/** Serves it to its end. Never rejects. */
export async function answerUpgrade(services: NodeServices, upgrade: UpgradeRequest): Promise<void> {
  const { request, socket } = upgrade;
  let serve: () => Promise<void>;
  try {
    const target = targetOf(services, request.url ?? "");
    const carrier = carrierOf(services, upgrade, target.verb === "portForward");
    serve =
      target.verb === "portForward"
        ? () => forwardPorts(carrier)
        : await programOf(services, target, carrier);
  } catch (error) {
    refuse(socket, error);
    return;
  }
  const cut = () => socket.destroy();
  upgrade.stopped.addEventListener("abort", cut, { once: true });
  // The protocol has changed: a failure can only end the connection.
  await serve().catch(cut);
  upgrade.stopped.removeEventListener("abort", cut);
}

function refuse(socket: Duplex, error: unknown): void {
  const code = error instanceof NodeRefusal ? error.code : 500;
  const text = error instanceof Error ? error.message : String(error);
  const length = Buffer.byteLength(text);
  socket.end(
    `HTTP/1.1 ${code} Refused\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n${text}`,
  );
}

/** @throws NodeRefusal where none of the offered protocols is known */
function carrierOf(services: NodeServices, upgrade: UpgradeRequest, isOfPorts: boolean): Carrier {
  switch (upgrade.request.headers.upgrade?.toLowerCase()) {
    case "websocket":
      return overWebSocket(upgrade, isOfPorts ? [tunnelProtocol] : channelProtocols);
    case "spdy/3.1":
      return overSpdy(services, upgrade, isOfPorts ? "portforward.k8s.io" : "v4.channel.k8s.io");
    default:
      throw new NodeRefusal(400, "local nodes speak SPDY/3.1 and WebSocket alone");
  }
}

function overWebSocket({ request, socket, head }: UpgradeRequest, known: readonly string[]): Carrier {
  const offered = offeredProtocols(request);
  const protocol = known.find((one) => offered.includes(one));
  if (protocol === undefined) throw noneKnown(offered, known);
  const upgrade = { request, socket, head, protocol };
  return {
    openStreams: (types) => openChannels(upgrade, types),
    openSpdy: async () => ({ socket: await openTunnel(upgrade), head: new Uint8Array(0) }),
  };
}

function overSpdy(
  { clock }: NodeServices,
  { request, socket, head, stopped }: UpgradeRequest,
  protocol: string,
): Carrier {
  const offered = String(request.headers["x-stream-protocol-version"] ?? "").split(/, */);
  if (!offered.includes(protocol)) throw noneKnown(offered, [protocol]);
  const accept = () =>
    void socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
    );
  return {
    openStreams(types) {
      accept();
      return openProgramStreams(clock, socket, head, types, stopped);
    },
    async openSpdy() {
      accept();
      return { socket, head };
    },
  };
}

function noneKnown(offered: readonly string[], known: readonly string[]): NodeRefusal {
  return new NodeRefusal(
    403,
    `unable to upgrade: none of ${offered.join(", ")} is spoken; offer ${known.join(" or ")}`,
  );
}

async function forwardPorts(carrier: Carrier): Promise<void> {
  const { socket, head } = await carrier.openSpdy();
  const ports = new PortForwarder();
  await serveSpdy(socket, head, (stream) => ports.take(stream)).closed;
}

/** @throws NodeRefusal where the container does not run, or nothing is served at the path */
async function programOf(
  services: NodeServices,
  target: NodeTarget,
  carrier: Carrier,
): Promise<() => Promise<void>> {
  const { verb, pod, container, params } = target;
  const { runtime } = services;
  if (verb !== "exec" && verb !== "attach") throw new NodeRefusal(404, "nothing is served there");
  const state = (await runtime.state(pod.metadata.uid, new AbortController().signal)).get(container);
  if (state?.kind !== "running") {
    throw new NodeRefusal(400, `container "${container}" of pod "${pod.metadata.name}" does not run`);
  }
  const wanted: RemoteStreams = {
    stdin: isTrue(params, "stdin") || isTrue(params, "input"),
    stdout: isTrue(params, "stdout") || isTrue(params, "output"),
    stderr: isTrue(params, "stderr") || isTrue(params, "error"),
    tty: isTrue(params, "tty"),
  };
  if (verb === "attach" && wanted.stdin && wanted.tty) {
    throw new NodeRefusal(400, "containers of local nodes have no terminal: attach with -i, without -t");
  }
  return async () => {
    const connection = await carrier.openStreams(expectedStreams(wanted));
    const { streams, signal } = connection;
    const argv = params.getAll("command");
    const { tty } = wanted;
    const request = { podUID: pod.metadata.uid, containerName: container, argv, tty, signal };
    const start =
      verb === "exec" ? () => runtime.exec(request) : () => attached(services, target, wanted.stdin, signal);
    await runRemoteCommand(streams, start);
    await connection.close();
  };
}

/** The output of the container from now on, and its standard input where it has one. What is written to none is dropped. */
async function attached(
  services: NodeServices,
  target: NodeTarget,
  hasInput: boolean,
  signal: AbortSignal,
): Promise<ExecProcess> {
  const request = { podUID: target.pod.metadata.uid, containerName: target.container, signal };
  const params = new URLSearchParams({ follow: "true", tailLines: "0" });
  const stdout = await logOf(services, { ...target, params }, signal);
  // After the log, so that no answer to the input is missed.
  const input = hasInput ? await services.runtime.attachInput(request) : undefined;
  async function* nothing(): AsyncGenerator<Uint8Array> {}
  return {
    async write(bytes) {
      await input?.write(bytes);
    },
    endInput: () => input?.endInput(),
    stdout,
    stderr: nothing(),
    exitCode: Promise.resolve(0),
  };
}
