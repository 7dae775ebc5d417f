/**
 * One of several `longshore run …` processes of a driver. Between it and the API server stands a recorder, between it
 * and the driver a line of its own, which can be cut.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import {
  type AddressInfo,
  connect,
  createServer as createSocketServer,
  type Server,
  type Socket,
} from "node:net";
import { systemClock } from "@longshore/runtime";
import type { Surroundings } from "./mortal-program.ts";
import { longshoreCommand } from "./test-cluster.ts";

/** A request that reached the API server. */
export interface Recorded {
  /** Time by the machine's monotonic clock. */
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
}

/** A `longshore run …` process whose connections a test records and can cut. */
export class SidecarReplica {
  readonly identity: string;
  readonly requests: Recorded[] = [];
  readonly terminationLog: string;
  readonly #recorder: Server;
  readonly #line: Server;
  readonly #socket: string;
  readonly #sockets = new Set<Socket>();
  #child: ChildProcess | undefined;
  #log = "";
  #ended: Promise<number | NodeJS.Signals> | undefined;

  private constructor(identity: string, recorder: Server, line: Server, directory: string) {
    this.identity = identity;
    this.#socket = `${directory}/${identity}.sock`;
    this.terminationLog = `${directory}/${identity}.end`;
    this.#recorder = recorder;
    this.#line = line;
  }

  /** Starts a process; `directory` is the test's, short enough for sockets. */
  static async start(
    identity: string,
    directory: string,
    surroundings: Omit<Surroundings, "sidecar" | "socket"> & Partial<Pick<Surroundings, "socket">>,
    argv: readonly string[],
    uses: { readonly kube?: boolean; readonly driver?: boolean; readonly lease?: boolean } = {},
  ): Promise<SidecarReplica> {
    const { kube = true, driver = true, lease = true } = uses;
    const { server, ca, token } = surroundings;
    const agent = new Agent({ ca, keepAlive: true });
    const recorder = createHttpServer((request, response) => {
      replica.#record(request);
      const upstream = httpsRequest(
        new URL(request.url ?? "/", server),
        { agent, method: request.method, headers: { ...request.headers, authorization: `Bearer ${token}` } },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          response.flushHeaders();
          answer.pipe(response);
        },
      );
      const drop = () => response.destroy();
      upstream.on("error", drop);
      response.on("close", () => upstream.destroy());
      request.pipe(upstream);
    });
    const line = createSocketServer((socket) => {
      const upstream = connect(surroundings.socket ?? "");
      replica.#sockets.add(socket);
      for (const [from, to] of [
        [socket, upstream],
        [upstream, socket],
      ] as const) {
        from.on("error", () => to.destroy());
        from.on("close", () => to.destroy());
        from.pipe(to);
      }
    });
    const replica = new SidecarReplica(identity, recorder, line, directory);
    const socket = replica.#socket;
    const kubeconfig = `${directory}/${identity}.kubeconfig`;
    line.listen(socket);
    recorder.listen(0, "127.0.0.1");
    await Promise.all([once(line, "listening"), once(recorder, "listening")]);
    const { port } = recorder.address() as AddressInfo;
    writeFileSync(kubeconfig, kubeconfigOf(`http://127.0.0.1:${port}`));
    writeFileSync(replica.terminationLog, "");
    replica.#run([
      "run",
      ...argv,
      ...(driver ? [`--csi-address=${socket}`] : []),
      ...(kube ? [`--kubeconfig=${kubeconfig}`] : []),
      ...(lease ? [`--leader-election-identity=${identity}`] : []),
      `--termination-log-path=${replica.terminationLog}`,
    ]);
    return replica;
  }

  /** What the process has logged. */
  get log(): string {
    return this.#log;
  }

  /** Writes to the API server since then, but for those to leases and events: that it leads no more is said on the Lease. */
  writesSince(atMs: number): readonly string[] {
    return this.requests
      .filter(
        ({ atMs: sentMs, method, path }) =>
          sentMs >= atMs && method !== "GET" && !path.includes("/leases") && !path.endsWith("/events"),
      )
      .map(({ method, path }) => `${method} ${path}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Its exit code, or the signal that ended it. */
  ended(): Promise<number | NodeJS.Signals> {
    return this.#ended ?? Promise.reject(new Error("it never ran"));
  }

  /** The driver is gone, for this process. */
  cutDriver(): void {
    this.#line.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  /** Listens on the socket of the driver again. */
  async restoreDriver(): Promise<void> {
    this.#line.listen(this.#socket);
    await once(this.#line, "listening");
  }

  async stop(): Promise<void> {
    this.signal("SIGKILL");
    await this.#ended;
    this.cutDriver();
    this.#recorder.close();
    this.#recorder.unref();
  }

  #record({ method = "", url = "" }: IncomingMessage): Recorded {
    const path = url.split("?")[0] ?? "";
    const recorded = { atMs: systemClock.monotonicMs(), method, path, isOfLeader: false };
    this.requests.push(recorded);
    return recorded;
  }

  #run(argv: readonly string[]): void {
    const [program = "", ...rest] = longshoreCommand;
    const child = spawn(program, [...rest, ...argv], { stdio: ["ignore", "ignore", "pipe"] });
    this.#child = child;
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#log += text;
    });
    this.#ended = once(child, "exit").then(([code, signal]) => code ?? signal);
  }
}

function kubeconfigOf(server: string): string {
  return JSON.stringify({
    "current-context": "test",
    clusters: [{ name: "test", cluster: { server } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    users: [{ name: "test", user: {} }],
  });
}
