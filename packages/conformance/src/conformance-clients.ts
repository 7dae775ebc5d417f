/**
 * The calls that checks make: typed clients over the connections, with deadline and secrets filled in, every call
 * recorded and reported to the watchers (the ledger, the protocol's observations).
 */
import {
  Controller,
  CsiCallError,
  type CsiCallOptions,
  type CsiClient,
  type CsiConnection,
  create,
  type DescMessage,
  type GetMetadataAllocatedRequestSchema,
  type GetMetadataAllocatedResponse,
  type GetMetadataDeltaRequestSchema,
  type GetMetadataDeltaResponse,
  GroupController,
  Identity,
  type MessageInitShape,
  type MessageShape,
  Node,
  redact,
} from "@longshore/csi";
import {
  clientOver,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  snapshotMetadataOver,
  type UnaryTransport,
} from "@longshore/csi/transport";
import type { Clock } from "@longshore/runtime";
import type { CallRecord } from "./check-result.ts";
import type { DriverSecrets } from "./driver-secrets.ts";

/** The calls of a service, without options: those of the run are filled in. */
export type ConformanceClient<S extends DescService> = {
  readonly [M in keyof CsiClient<S>]: CsiClient<S>[M] extends (
    request: infer I,
    options: CsiCallOptions,
  ) => infer O
    ? (request: I) => O
    : never;
};

/** The calls of the service that streams: each returns all messages of its stream. */
export interface SnapshotMetadataClient {
  getMetadataAllocated(
    request: MessageInitShape<typeof GetMetadataAllocatedRequestSchema>,
  ): Promise<readonly GetMetadataAllocatedResponse[]>;
  getMetadataDelta(
    request: MessageInitShape<typeof GetMetadataDeltaRequestSchema>,
  ): Promise<readonly GetMetadataDeltaResponse[]>;
}

/** The calls of a driver. */
export interface ConformanceClients {
  readonly identity: ConformanceClient<typeof Identity>;
  /** The identity service at the controller's endpoint; the same one where there is one endpoint only. */
  readonly controllerIdentity: ConformanceClient<typeof Identity>;
  readonly controller: ConformanceClient<typeof Controller>;
  readonly groupController: ConformanceClient<typeof GroupController>;
  readonly snapshotMetadata: SnapshotMetadataClient;
  readonly node: ConformanceClient<typeof Node>;
}

type Method = DescMethodUnary | DescMethodServerStreaming;

/** One call as it ended. */
export interface CallOutcome {
  readonly method: Method;
  readonly request: MessageShape<DescMessage>;
  /** Undefined when it failed; of a stream: one message with the lists of all. */
  readonly response: MessageShape<DescMessage> | undefined;
  readonly error: CsiCallError | undefined;
}

/** Receives every call. */
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
    snapshotMetadata: collecting(options, controllerConnection),
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
    const { response } = await recorded(env, method as DescMethodUnary, request, async () => {
      return { response: await call(request, options) };
    });
    return response as MessageShape<typeof method.output>;
  };
}

/** Makes the call and reports it to the watchers. */
async function recorded<T extends { readonly response: MessageShape<DescMessage> }>(
  env: ConformanceClientOptions,
  method: Method,
  request: MessageShape<DescMessage>,
  make: () => Promise<T>,
): Promise<T> {
  const startedMs = env.clock.monotonicMs();
  for (const watcher of env.watchers) watcher.onStart?.(method.name);
  const end = (response: MessageShape<DescMessage> | undefined, error: CsiCallError | undefined) => {
    const record: CallRecord = {
      rpc: method.name,
      code: error?.code ?? "OK",
      ...(error === undefined ? {} : { message: env.strip(error.detail) }),
      request: redact(method.input, request),
      elapsedMs: env.clock.monotonicMs() - startedMs,
    };
    for (const watcher of env.watchers) watcher.onEnd?.({ method, request, response, error }, record);
  };
  try {
    const made = await make();
    end(made.response, undefined);
    return made;
  } catch (error) {
    end(undefined, callErrorOf(method.name, error));
    throw error;
  }
}

/** The streams of a connection, each read to its end. */
function collecting(env: ConformanceClientOptions, connection: CsiConnection): SnapshotMetadataClient {
  const calls = connection.snapshotMetadata as unknown as Readonly<
    Record<string, (request: object, options: CsiCallOptions) => AsyncIterable<MetadataMessage>>
  >;
  const collect = snapshotMetadataOver(async function* (method, given, options) {
    const request = withSecrets(method, given, env.secrets);
    const { messages } = await recorded(env, method, request, async () => {
      const messages: MetadataMessage[] = [];
      for await (const message of calls[method.localName]?.(request, options) ?? []) messages.push(message);
      const blockMetadata = messages.flatMap((message) => message.blockMetadata);
      const whole = { ...messages[0], blockMetadata } as MessageInitShape<DescMessage>;
      return { messages, response: create(method.output, whole) };
    });
    yield* messages;
  });
  const { signal, timeoutMs } = env;
  const all = async <T>(stream: AsyncIterable<T>): Promise<readonly T[]> => {
    const messages: T[] = [];
    for await (const message of stream) messages.push(message);
    return messages;
  };
  return {
    getMetadataAllocated: (request) => all(collect.getMetadataAllocated(request, { signal, timeoutMs })),
    getMetadataDelta: (request) => all(collect.getMetadataDelta(request, { signal, timeoutMs })),
  };
}

type MetadataMessage = GetMetadataAllocatedResponse | GetMetadataDeltaResponse;

function callErrorOf(rpc: string, error: unknown): CsiCallError {
  if (error instanceof CsiCallError) return error;
  return new CsiCallError(rpc, "UNKNOWN", String(error), { answered: false, cause: error });
}

/** A request without secrets of its own gets those of its RPC. */
function withSecrets(
  method: Method,
  request: MessageShape<DescMessage>,
  secrets: DriverSecrets,
): MessageShape<DescMessage> {
  const own = secrets[method.name];
  if (own === undefined || !method.input.fields.some(({ name }) => name === "secrets")) return request;
  const present = (request as { readonly secrets?: Record<string, string> }).secrets ?? {};
  if (Object.keys(present).length > 0) return request;
  return create(method.input, { ...request, secrets: own } as MessageInitShape<DescMessage>);
}
