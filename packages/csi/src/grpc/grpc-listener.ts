/**
 * The gRPC form of {@link CsiListener}: serves drivers and registrars on unix sockets of mode 0600.
 * A socket that a dead server left behind is removed; one with a live server is not touched.
 */
import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { createServer, type Server as NetServer, connect as netConnect, type Socket } from "node:net";
import { dirname } from "node:path";
import { isMainThread } from "node:worker_threads";
import type { DescMethodServerStreaming, DescMethodUnary, DescService } from "@bufbuild/protobuf";
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { type RuntimeEnv, underUmask } from "@longshore/runtime";
import { dispatch, handlersOf, registrationHandlersOf, statusOfFailure } from "../calls/unary-transport.ts";
import type { CsiHandlers, CsiListener, CsiServer } from "../csi-connection.ts";
import { CsiEndpointError, socketPathOf } from "../endpoint.ts";
import { grpcCodes } from "../errors.ts";
import { Controller, GroupController, Identity, Node, SnapshotMetadata } from "../gen/csi_pb.ts";
import { Registration } from "../gen/pluginregistration_pb.ts";
import { answerStream } from "./grpc-server-stream.ts";
import { type AnyMessage, longestMessageBytes, serviceDefinition } from "./grpc-service.ts";

const services: readonly DescService[] = [
  Identity,
  Controller,
  GroupController,
  SnapshotMetadata,
  Node,
  Registration,
];

/** Serves CSI over unix sockets. Failures of handlers that are not statuses are logged. */
export function grpcListener(env: Pick<RuntimeEnv, "logger">): CsiListener {
  return {
    serve: (endpoint, driver) => serve(env, endpoint, handlersOf(driver)),
    serveRegistration: (socketPath, handlers) => serve(env, socketPath, registrationHandlersOf(handlers)),
  };
}

async function serve(
  env: Pick<RuntimeEnv, "logger">,
  endpoint: string,
  handlers: ReadonlyMap<string, CsiHandlers<DescService>>,
): Promise<CsiServer> {
  const path = socketPathOf(endpoint);
  const running = new Set<Promise<void>>();
  const grpc = new Server({ "grpc.max_receive_message_length": longestMessageBytes });
  for (const service of services) {
    const own = handlers.get(service.typeName);
    if (own !== undefined)
      grpc.addService(serviceDefinition(service), implementation(env, service, own, running));
  }
  await removeStaleSocket(path);
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const net = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // Not bound by grpc-js: it binds in a later turn, when the umask is that of the process again.
    injector.injectConnection(socket);
  });
  await listen(net, path);
  return {
    endpoint: path,
    async close() {
      const closed = new Promise<void>((resolve) => net.close(() => resolve())); // Removes the socket.
      grpc.forceShutdown();
      injector.destroy();
      for (const socket of sockets) socket.destroy();
      await Promise.allSettled(running);
      await closed;
    },
  };
}

/** Binds with mode 0600 from the first moment on, where the umask can be set (not in a worker thread). */
function listen(net: NetServer, path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return new Promise((resolve, reject) => {
    try {
      net.once("error", (cause) =>
        reject(
          new CsiEndpointError(`cannot listen on ${path}: check the directory and its rights`, { cause }),
        ),
      );
      underUmask(0o177, () => net.listen(path, () => resolve()));
      if (!isMainThread) chmodSync(path, 0o600);
    } catch (error) {
      reject(error);
    }
  });
}

/** @throws CsiEndpointError when a live server answers on the socket */
async function removeStaleSocket(path: string): Promise<void> {
  const live = await new Promise<boolean>((resolve) => {
    const probe = netConnect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
  if (live)
    throw new CsiEndpointError(`socket ${path} is in use by a live server: stop it or choose another`);
  rmSync(path, { force: true });
}

function implementation(
  env: Pick<RuntimeEnv, "logger">,
  service: DescService,
  handlers: CsiHandlers<DescService>,
  running: Set<Promise<void>>,
): UntypedServiceImplementation {
  const methods: UntypedServiceImplementation = {};
  for (const method of service.methods) {
    if (method.methodKind === "server_streaming") {
      methods[method.localName] = (call: ServerWritableStream<AnyMessage, AnyMessage>) => {
        const work = answerStream(env, method as DescMethodServerStreaming, handlers, call).finally(() =>
          running.delete(work),
        );
        running.add(work);
      };
    }
    if (method.methodKind !== "unary") continue;
    methods[method.localName] = (
      call: ServerUnaryCall<AnyMessage, AnyMessage>,
      callback: sendUnaryData<AnyMessage>,
    ) => {
      const cancel = new AbortController();
      call.on("cancelled", () => cancel.abort());
      const work = dispatch(handlers, method as DescMethodUnary, call.request, cancel.signal)
        .then(
          (answer) => callback(null, answer),
          (error: unknown) => {
            const { code, message, known } = statusOfFailure(error);
            if (!known && !cancel.signal.aborted) env.logger.error(`${method.name} failed`, { error });
            callback({ code: grpcCodes.indexOf(code), details: message });
          },
        )
        .finally(() => running.delete(work));
      running.add(work);
    };
  }
  return methods;
}
