/**
 * What faults are made of: wrappers around handlers. A fault changes the answer of one RPC in one case, and
 * passes everything else on, so that a driver with it breaks one rule of the contract.
 */
import { type CsiServices, CsiStatusError, type GrpcCode } from "@longshore/csi";
import type { Host } from "@longshore/runtime";

/** What a fault may use besides the services. */
export interface FaultContext {
  readonly host: Host;
}

/** Returns services that break a rule. */
export type Fault = (services: CsiServices, context: FaultContext) => CsiServices;

/** A service of a driver. */
export type ServiceName = keyof CsiServices;
type Service<S extends ServiceName> = Required<NonNullable<CsiServices[S]>>;
/** An RPC of a service. */
export type Rpc<S extends ServiceName> = keyof Service<S> & string;
/** The handler of an RPC. */
export type Handler<S extends ServiceName, R extends Rpc<S>> = Service<S>[R];

/** The request of an RPC. */
export type RequestOf<S extends ServiceName, R extends Rpc<S>> =
  Handler<S, R> extends (request: infer I, signal: AbortSignal) => unknown ? I : never;
/** What a handler of the RPC answers. */
export type AnswerOf<S extends ServiceName, R extends Rpc<S>> =
  Handler<S, R> extends (request: never, signal: AbortSignal) => Promise<infer O> ? O : never;
type Next<S extends ServiceName, R extends Rpc<S>> = (
  request: RequestOf<S, R>,
  signal: AbortSignal,
) => Promise<AnswerOf<S, R>>;
/** A call as a wrapper sees it. */
export interface FaultyCall<S extends ServiceName, R extends Rpc<S>> {
  readonly request: RequestOf<S, R>;
  readonly signal: AbortSignal;
  /** The driver without the fault. */
  readonly services: CsiServices;
  readonly context: FaultContext;
  /** Goes on with the driver's own handler, with this request or another. */
  readonly next: (request?: RequestOf<S, R>) => Promise<AnswerOf<S, R>>;
}

/** A fault of one RPC. A driver without the RPC is left as it is. */
export function around<S extends ServiceName, R extends Rpc<S>>(
  service: S,
  rpc: R,
  make: () => (call: FaultyCall<S, R>) => Promise<AnswerOf<S, R>>,
): Fault {
  return (services, context) => {
    const handlers = services[service];
    const own = (handlers as Readonly<Record<string, unknown>> | undefined)?.[rpc] as Next<S, R> | undefined;
    if (own === undefined) return services;
    const wrapper = make();
    const faulty: Next<S, R> = (request, signal) =>
      wrapper({ request, signal, services, context, next: (other = request) => own(other, signal) });
    return { ...services, [service]: { ...handlers, [rpc]: faulty } };
  };
}

/** Several faults as one. */
export function all(...faults: readonly Fault[]): Fault {
  return (services, context) => faults.reduce((faulty, fault) => fault(faulty, context), services);
}

/** Answers so whenever `when` holds of a request; else as the driver does. */
export function answersWhen<S extends ServiceName, R extends Rpc<S>>(
  service: S,
  rpc: R,
  when: (request: RequestOf<S, R>) => boolean,
  answer: (request: RequestOf<S, R>) => AnswerOf<S, R>,
): Fault {
  return around(
    service,
    rpc,
    () =>
      async ({ request, next }) =>
        when(request) ? answer(request) : next(),
  );
}

/** Answers so where the driver fails with this code (and `when` holds). */
export function answersOn<S extends ServiceName, R extends Rpc<S>>(
  service: S,
  rpc: R,
  code: GrpcCode,
  answer: (call: FaultyCall<S, R>, error: CsiStatusError) => AnswerOf<S, R> | Promise<AnswerOf<S, R>>,
  when: (error: CsiStatusError, request: RequestOf<S, R>) => boolean = () => true,
): Fault {
  return around(service, rpc, () => async (call): Promise<AnswerOf<S, R>> => {
    try {
      return await call.next();
    } catch (error) {
      if (!(error instanceof CsiStatusError) || error.code !== code || !when(error, call.request))
        throw error;
      return answer(call, error);
    }
  });
}

/** Passes another request on. */
export function asks<S extends ServiceName, R extends Rpc<S>>(
  service: S,
  rpc: R,
  change: (request: RequestOf<S, R>) => RequestOf<S, R>,
): Fault {
  return around(
    service,
    rpc,
    () =>
      async ({ request, next }) =>
        next(change(request)),
  );
}

/** Changes what the driver answers. */
export function changes<S extends ServiceName, R extends Rpc<S>>(
  service: S,
  rpc: R,
  change: (answer: AnswerOf<S, R>, request: RequestOf<S, R>) => AnswerOf<S, R>,
): Fault {
  return around(
    service,
    rpc,
    () =>
      async ({ request, next }) =>
        change(await next(), request),
  );
}

/** The reverse of an RPC, and what of its request names what it undoes. */
export interface Undone {
  readonly service: ServiceName;
  readonly rpc: string;
  readonly key: (request: Readonly<Record<string, unknown>>) => string;
}

/** Refuses the second call with this key, until the reverse call undid the first. */
export function notTwice<S extends ServiceName, R extends Rpc<S>>(
  service: S,
  rpc: R,
  key: (request: RequestOf<S, R>) => string,
  refusal: { readonly code: GrpcCode; readonly undone?: Undone },
): Fault {
  return (services, context) => {
    const done = new Set<string>();
    const refusing = around(service, rpc, () => async ({ request, next }): Promise<AnswerOf<S, R>> => {
      const answer = await next();
      if (done.has(key(request))) throw new CsiStatusError(refusal.code, "this was done already");
      done.add(key(request));
      return answer;
    });
    const { undone } = refusal;
    const faulty = refusing(services, context);
    if (undone === undefined) return faulty;
    return everyCall(async (call) => {
      const answer = await call.next();
      if (call.service === undone.service && call.rpc === undone.rpc) done.delete(undone.key(call.request));
      return answer;
    })(faulty, context);
  };
}

/** A call of any RPC. */
export interface AnyCall {
  readonly service: ServiceName;
  readonly rpc: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly next: (request?: Readonly<Record<string, unknown>>) => Promise<object>;
}

/** A fault of every RPC. */
export function everyCall(wrapper: (call: AnyCall) => Promise<object>): Fault {
  return (services) => {
    const faulty: Record<string, unknown> = {};
    for (const [service, handlers] of Object.entries(services)) {
      const wrapped: Record<string, unknown> = {};
      for (const [rpc, own] of Object.entries(handlers as Record<string, unknown>)) {
        const handler = own as (request: unknown, signal: AbortSignal) => Promise<object>;
        const call = (request: AnyCall["request"], next: AnyCall["next"]) =>
          wrapper({ service: service as ServiceName, rpc, request, next });
        wrapped[rpc] =
          service === "snapshotMetadata"
            ? streamed(call, own as StreamHandler)
            : (request: AnyCall["request"], signal: AbortSignal) =>
                call(request, (other = request) => handler(other, signal));
      }
      faulty[service] = wrapped;
    }
    return faulty as unknown as CsiServices;
  };
}

type StreamHandler = (request: unknown, signal: AbortSignal) => AsyncIterable<object>;

/** A call with a stream of answers, to a wrapper that knows of one: what it sees is the whole of them. */
function streamed(
  call: (request: AnyCall["request"], next: AnyCall["next"]) => Promise<object>,
  handler: StreamHandler,
) {
  return async function* (request: AnyCall["request"], signal: AbortSignal) {
    const answers = await call(request, async (other = request) => {
      const all: object[] = [];
      for await (const answer of handler(other, signal)) all.push(answer);
      return all;
    });
    yield* answers as readonly object[];
  };
}

/** What comes before a failure to be seen by the caller: another one. */
export function everyFailure(change: (error: CsiStatusError, call: AnyCall) => CsiStatusError): Fault {
  return everyCall(async (call) => {
    try {
      return await call.next();
    } catch (error) {
      throw error instanceof CsiStatusError ? change(error, call) : error;
    }
  });
}
