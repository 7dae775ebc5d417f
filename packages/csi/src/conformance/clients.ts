/**
 * The calls that checks make: typed clients over the connections, with deadline and secrets filled in, every
 * call recorded and told to whoever watches (the ledger, the protocol's observations).
 */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { Clock } from "@longshore/runtime";
import type { CsiCallOptions, CsiClient, CsiConnection } from "../connection.ts";
import { CsiCallError } from "../errors.ts";
import { Controller, GroupController, Identity, Node } from "../gen/csi_pb.ts";
import { redact } from "../redact.ts";
import { clientOver, type UnaryTransport } from "../unary.ts";
import type { CallRecord } from "./result.ts";
import type { DriverSecrets } from "./secrets.ts";

/** The calls of a service, without options: those of the run are filled in. */
export type ConformanceClient<S extends DescService> = {
  readonly [M in keyof CsiClient<S>]: CsiClient<S>[M] extends (
    request: infer I,
    options: CsiCallOptions,
  ) => infer O
    ? (request: I) => O
    : never;
};

/** The calls of a driver. */
export interface ConformanceClients {
  readonly identity: ConformanceClient<typeof Identity>;
  /** The identity service at the controller's endpoint; the same one where there is one endpoint only. */
  readonly controllerIdentity: ConformanceClient<typeof Identity>;
  readonly controller: ConformanceClient<typeof Controller>;
  readonly groupController: ConformanceClient<typeof GroupController>;
  readonly node: ConformanceClient<typeof Node>;
}

/** One call as it ended. */
export interface CallOutcome {
  readonly method: DescMethodUnary;
  readonly request: MessageShape<DescMessage>;
  /** Undefined when it failed. */
  readonly response: MessageShape<DescMessage> | undefined;
  readonly error: CsiCallError | undefined;
}

/** Told of every call. */
export interface CallWatcher {
  /** Before it is made. */
  onStart?(rpc: string): void;
  onEnd?(outcome: CallOutcome, record: CallRecord): void;
}

/** What {@link conformanceClients} works with. */
export interface ConformanceClientOptions {
  readonly clock: Clock;
  readonly connection: CsiConnection;
  readonly controllerConnection: CsiConnection;
  readonly timeoutMs: number;
  readonly secrets: DriverSecrets;
  readonly strip: (text: string) => string;
  readonly watchers: readonly CallWatcher[];
  readonly signal: AbortSignal;
}

/** Makes the clients. */
export function conformanceClients(options: ConformanceClientOptions): ConformanceClients {
  const { connection, controllerConnection } = options;
  const over = <S extends DescService>(service: S, client: object) =>
    withoutOptions(service, recordingTransport(options, client), options);
  return {
    identity: over(Identity, connection.identity),
    controllerIdentity: over(Identity, controllerConnection.identity),
    controller: over(Controller, controllerConnection.controller),
    groupController: over(GroupController, controllerConnection.groupController),
    node: over(Node, connection.node),
  };
}

function withoutOptions<S extends DescService>(
  service: S,
  transport: UnaryTransport,
  { signal, timeoutMs }: ConformanceClientOptions,
): ConformanceClient<S> {
  const client = clientOver(service, transport) as Record<
    string,
    (request: unknown, options: CsiCallOptions) => unknown
  >;
  return Object.fromEntries(
    Object.entries(client).map(([name, call]) => [
      name,
      (request: unknown) => call(request, { signal, timeoutMs }),
    ]),
  ) as ConformanceClient<S>;
}

type Call = (
  request: MessageShape<DescMessage>,
  options: CsiCallOptions,
) => Promise<MessageShape<DescMessage>>;

function recordingTransport(env: ConformanceClientOptions, client: object): UnaryTransport {
  return async (method, given, options) => {
    const request = withSecrets(method as DescMethodUnary, given, env.secrets);
    const call = (client as Record<string, Call>)[method.localName] as Call;
    const startedMs = env.clock.monotonicMs();
    for (const watcher of env.watchers) watcher.onStart?.(method.name);
    const end = (response: MessageShape<DescMessage> | undefined, error: CsiCallError | undefined) => {
      const record: CallRecord = {
        rpc: method.name,
        code: error?.code ?? "OK",
        ...(error === undefined ? {} : { message: env.strip(error.detail) }),
        request: redact(method.input, request as MessageShape<typeof method.input>),
        elapsedMs: env.clock.monotonicMs() - startedMs,
      };
      const outcome = { method: method as DescMethodUnary, request, response, error };
      for (const watcher of env.watchers) watcher.onEnd?.(outcome, record);
    };
    try {
      const response = await call(request, options);
      end(response, undefined);
      return response as MessageShape<typeof method.output>;
    } catch (error) {
      end(undefined, callErrorOf(method.name, error));
      throw error;
    }
  };
}

function callErrorOf(rpc: string, error: unknown): CsiCallError {
  if (error instanceof CsiCallError) return error;
  return new CsiCallError(rpc, "UNKNOWN", String(error), { answered: false, cause: error });
}

/** A request without secrets of its own gets those of its RPC. */
function withSecrets(
  method: DescMethodUnary,
  request: MessageShape<DescMessage>,
  secrets: DriverSecrets,
): MessageShape<DescMessage> {
  const own = secrets[method.name];
  if (own === undefined || !method.input.fields.some(({ name }) => name === "secrets")) return request;
  const present = (request as { readonly secrets?: Record<string, string> }).secrets ?? {};
  if (Object.keys(present).length > 0) return request;
  return create(method.input, { ...request, secrets: own } as MessageInitShape<DescMessage>);
}
