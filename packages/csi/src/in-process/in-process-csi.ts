/**
 * The in-process form of the CSI seams: a table from endpoint to services, no socket and no gRPC.
 * Messages still cross as bytes, so neither side sees the other's objects and defaults are those
 * of the wire. Runs under a virtual clock: only promises and clock timers.
 */
import { setMaxListeners } from "node:events";
import {
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { abortable, type Clock, DeadlineError, withDeadline } from "@longshore/runtime";
import { guardedConnection, guardedUnary, RecentSecrets } from "../calls/guarded-connection.ts";
import type { StreamTransport } from "../calls/stream-transport.ts";
import {
  dispatch,
  handlersOf,
  registrationHandlersOf,
  registrationOver,
  statusOfFailure,
  type UnaryTransport,
} from "../calls/unary-transport.ts";
import type { CsiCallOptions, CsiConnector, CsiHandlers, CsiListener, CsiServer } from "../csi-connection.ts";
import { socketPathOf } from "../endpoint.ts";
import { CsiCallError } from "../errors.ts";
import { LossListeners } from "../loss-listeners.ts";
import { inProcessStream } from "./in-process-stream.ts";

/** One call on its way, as a fault hook sees it. */
export interface InProcessCall {
  /** Path of the socket. */
  readonly endpoint: string;
  /** `csi.v1.Controller` and so on. */
  readonly service: string;
  /** `CreateVolume` and so on. */
  readonly rpc: string;
  readonly request: MessageShape<DescMessage>;
}

/**
 * Stands between client and server of a unary call. To lose a request, throw without calling `proceed`; to lose a
 * reply, throw after it; see {@link lostReply}.
 */
export type InProcessHook = (
  call: InProcessCall,
  proceed: () => Promise<MessageShape<DescMessage>>,
) => Promise<MessageShape<DescMessage>>;

/**
 * Connector and listener in one, with its fault hooks, for tests and the simulation. It holds to the same contract as gRPC
 * over a socket (`testing/connection.contract.ts`): messages are encoded and decoded, deadlines run on the given clock.
 */
export interface InProcessCsi extends CsiConnector, CsiListener {
  /** Wraps every later unary call in a hook (the last one is outermost). Returns a function that removes it. */
  intercept(hook: InProcessHook): () => void;
  /** Ends the server of the endpoint as a kill does: calls in flight end without an answer, new ones find no server. */
  crash(endpoint: string): void;
  /** The endpoints that are being served, sorted. */
  endpoints(): readonly string[];
}

/** Why the calls of a connection end that its user has closed. */
function connectionClosed(): Error {
  return new Error("the connection was closed");
}

/** The failure of a call whose answer (or request) got lost on the way. */
export function lostReply(rpc: string): CsiCallError {
  return new CsiCallError(rpc, "UNAVAILABLE", "the connection was lost", { answered: false });
}

interface Served {
  readonly handlers: ReadonlyMap<string, CsiHandlers<DescService>>;
  readonly gone: AbortController;
}

/** Makes an empty table of endpoints. @param env the clock that deadlines run on */
export function inProcessCsi(env: { readonly clock: Clock }): InProcessCsi {
  const table = new Map<string, Served>();
  const hooks: InProcessHook[] = [];
  const recent = new RecentSecrets();

  function serve(path: string, handlers: Served["handlers"]): CsiServer {
    if (table.has(path))
      throw new Error(`socket ${path} is in use by a live server: stop it or choose another`);
    const served: Served = { handlers, gone: new AbortController() };
    setMaxListeners(0, served.gone.signal); // One listener a running call: many are no leak.
    table.set(path, served);
    return {
      endpoint: path,
      close: async () => {
        // After a crash another server may listen at the path.
        if (table.get(path) === served) crash(path);
      },
    };
  }

  function crash(path: string): void {
    const served = table.get(path);
    table.delete(path);
    served?.gone.abort(new Error("the server went away"));
  }

  function transportTo(path: string, closed: AbortSignal): UnaryTransport {
    return async (method, request, options) => {
      const answer = await callOnce(path, method as DescMethodUnary, request, options, closed);
      return answer as MessageShape<typeof method.output>;
    };
  }

  async function callOnce(
    path: string,
    method: DescMethodUnary,
    request: MessageShape<DescMessage>,
    options: CsiCallOptions,
    closed: AbortSignal,
  ): Promise<MessageShape<DescMessage>> {
    const unanswered = (
      code: "UNAVAILABLE" | "CANCELLED" | "DEADLINE_EXCEEDED",
      detail: string,
      cause: unknown,
    ) => new CsiCallError(method.name, code, detail, { answered: false, cause });
    if (closed.aborted) throw unanswered("CANCELLED", "the connection is closed", closed.reason);
    const proceed = async () => {
      const served = table.get(path);
      if (served === undefined) throw unanswered("UNAVAILABLE", `nothing listens on ${path}`, undefined);
      const gone = served.gone.signal;
      const wire = fromBinary(method.input, toBinary(method.input, request));
      const cancel = new AbortController();
      const abort = () => cancel.abort();
      const sources = [gone, closed, signal];
      for (const source of sources) source.addEventListener("abort", abort, { once: true });
      try {
        const handlers = served.handlers.get(method.parent.typeName);
        const answer = await abortable(
          abortable(dispatch(handlers, method, wire, cancel.signal), gone),
          closed,
        );
        return fromBinary(method.output, toBinary(method.output, answer));
      } catch (error) {
        if (gone.aborted) throw unanswered("UNAVAILABLE", "the connection was lost", error);
        if (closed.aborted) throw unanswered("CANCELLED", "the connection was closed", error);
        const { code, message } = statusOfFailure(error);
        throw new CsiCallError(method.name, code, message, { answered: code !== "DEADLINE_EXCEEDED" });
      } finally {
        for (const source of sources) source.removeEventListener("abort", abort);
      }
    };
    let signal = options.signal;
    try {
      return await withDeadline(env.clock, options.timeoutMs, options.signal, (callSignal) => {
        signal = callSignal;
        const call = { endpoint: path, service: method.parent.typeName, rpc: method.name, request };
        const run = hooks.reduce<() => Promise<MessageShape<DescMessage>>>(
          (next, hook) => () => hook(call, next),
          proceed,
        );
        return abortable(run(), callSignal);
      });
    } catch (error) {
      if (error instanceof CsiCallError) throw error;
      if (error instanceof DeadlineError && !options.signal.aborted) {
        throw unanswered("DEADLINE_EXCEEDED", `no answer within ${options.timeoutMs} ms`, error);
      }
      if (options.signal.aborted) throw unanswered("CANCELLED", "the caller gave up", error);
      throw unanswered("UNAVAILABLE", "the call failed on the way", error);
    }
  }

  return {
    connect(endpoint, connectOptions) {
      const path = socketPathOf(endpoint);
      const closed = new AbortController();
      setMaxListeners(0, closed.signal);
      const losses = new LossListeners();
      // The server of the call that was answered last; one that never answered was never reached.
      let established: Served | undefined;
      let unfollow = () => {};
      const onGone = () => losses.notify();
      const transport = transportTo(path, closed.signal);
      const answeredBy = (served: Served | undefined) => {
        if (served !== undefined && served !== established && !closed.signal.aborted) {
          established = served;
          const { signal } = served.gone;
          unfollow();
          if (signal.aborted) losses.notify();
          else signal.addEventListener("abort", onGone, { once: true });
          // A server that outlives its connections must not collect a listener from each.
          unfollow = () => signal.removeEventListener("abort", onGone);
        }
      };
      const unary: UnaryTransport = async (method, request, options) => {
        const served = table.get(path);
        const answer = await transport(method, request, options);
        answeredBy(served);
        return answer;
      };
      const stream: StreamTransport = async function* (method, request, options) {
        const peer = { served: table.get(path), endpoint: path, closed: closed.signal };
        for await (const answer of inProcessStream(env.clock, peer, method, request, options)) {
          answeredBy(peer.served);
          yield answer;
        }
      };
      const line = {
        onLost: (listener: () => void) => losses.add(listener),
        close() {
          losses.clear();
          unfollow();
          closed.abort(connectionClosed());
        },
      };
      return guardedConnection({ unary, stream }, recent, line, connectOptions);
    },
    connectRegistration(socketPath) {
      const closed = new AbortController();
      const transport = transportTo(socketPathOf(socketPath), closed.signal);
      return registrationOver(guardedUnary(transport, recent), () => closed.abort(connectionClosed()));
    },
    serve: async (endpoint, services) => serve(socketPathOf(endpoint), handlersOf(services)),
    serveRegistration: async (socketPath, handlers) =>
      serve(socketPathOf(socketPath), registrationHandlersOf(handlers)),
    intercept(hook) {
      hooks.push(hook);
      return () => {
        const at = hooks.indexOf(hook);
        if (at >= 0) hooks.splice(at, 1);
      };
    },
    crash: (endpoint) => crash(socketPathOf(endpoint)),
    endpoints: () => [...table.keys()].sort(),
  };
}
