/** Ways to break a driver, as wrappers of its services: each breaks one rule and leaves the rest as it is. */
import { type CsiServices, CsiStatusError, type GrpcCode } from "@longshore/csi";
import type { Host } from "@longshore/runtime";
import type { Fault } from "./fake-world.ts";

/** A request or an answer whose type does not matter here. */
// biome-ignore lint/suspicious/noExplicitAny: faults reach into messages of every kind
export type Loose = any;

type Handler = (request: Loose, signal: AbortSignal) => Promise<Loose>;

const serviceNames = ["identity", "controller", "groupController", "node"] as const;

/** Puts `around` between the caller and the handler of one RPC. */
export function around(rpc: string, wrap: (call: Handler) => Handler): Fault {
  return (services) => {
    const broken: Record<string, object> = { ...services };
    for (const name of serviceNames) {
      const service = services[name] as Record<string, Handler> | undefined;
      const call = service?.[rpc];
      if (service !== undefined && call !== undefined) broken[name] = { ...service, [rpc]: wrap(call) };
    }
    return broken as unknown as CsiServices;
  };
}

type Collected = (request: Loose, signal: AbortSignal) => Promise<Loose[]>;

/** Puts `around` between the caller and a handler that streams; what it sees is all messages together. */
export function aroundStream(rpc: string, wrap: (call: Collected) => Collected): Fault {
  return (services) => {
    const service = services.snapshotMetadata as unknown as
      | Record<string, (request: Loose, signal: AbortSignal) => AsyncIterable<Loose>>
      | undefined;
    const call = service?.[rpc];
    if (service === undefined || call === undefined) return services;
    const wrapped = wrap(async (request, signal) => {
      const messages: Loose[] = [];
      for await (const message of call(request, signal)) messages.push(message);
      return messages;
    });
    async function* faulty(request: Loose, signal: AbortSignal) {
      yield* await wrapped(request, signal);
    }
    return { ...services, snapshotMetadata: { ...service, [rpc]: faulty } } as unknown as CsiServices;
  };
}

/** The messages of a stream are others. */
export const altersStream = (rpc: string, change: (messages: Loose[], request: Loose) => Loose[]): Fault =>
  aroundStream(rpc, (call) => async (request, signal) => change(await call(request, signal), request));

/** Requests of this kind are answered with one message. */
export const streams = (rpc: string, when: (request: Loose) => boolean, message: Loose): Fault =>
  aroundStream(rpc, (call) => async (request, signal) => (when(request) ? [message] : call(request, signal)));

/** All faults together, the last one outermost. */
export const all =
  (...faults: readonly Fault[]): Fault =>
  (services, host) =>
    faults.reduce((broken, fault) => fault(broken, host), services);

/** Requests of this kind are answered without being looked at. */
export const answers = (rpc: string, when: (request: Loose) => boolean, answer: Loose = {}): Fault =>
  around(rpc, (call) => async (request, signal) => (when(request) ? answer : call(request, signal)));

/** Requests of this kind are refused. */
export const refuses = (rpc: string, when: (request: Loose) => boolean, code: GrpcCode = "INTERNAL"): Fault =>
  around(rpc, (call) => async (request, signal) => {
    if (when(request)) throw new CsiStatusError(code, "planted");
    return call(request, signal);
  });

/** The answer is another one. */
export const alters = (rpc: string, change: (answer: Loose, request: Loose) => Loose): Fault =>
  around(rpc, (call) => async (request, signal) => change(await call(request, signal), request));

/** The request that the driver sees is another one. */
export const mistakes = (rpc: string, change: (request: Loose) => Loose): Fault =>
  around(rpc, (call) => async (request, signal) => call(change(request), signal));

/** A refusal with one code becomes one with another, or is answered. */
export const confuses = (rpc: string, from: GrpcCode, to: GrpcCode | { readonly answer: Loose }): Fault =>
  around(rpc, (call) => async (request, signal) => {
    try {
      return await call(request, signal);
    } catch (error) {
      if (!(error instanceof CsiStatusError) || error.code !== from) throw error;
      if (typeof to === "string") throw new CsiStatusError(to, "planted");
      return to.answer;
    }
  });

/** A request like one that was served is refused. @param key what makes requests alike */
export const refusesRepeats = (
  rpc: string,
  key: (request: Loose) => string,
  code: GrpcCode = "INTERNAL",
): Fault =>
  around(rpc, (call) => {
    const served = new Set<string>();
    return async (request, signal) => {
      if (served.has(key(request))) throw new CsiStatusError(code, "planted: it was done already");
      const answer = await call(request, signal);
      served.add(key(request));
      return answer;
    };
  });

/** Calls that come while another one is under way are refused. */
export const refusesCompany = (rpc: string, sameKey?: (request: Loose) => string): Fault =>
  around(rpc, (call) => {
    const underWay: string[] = [];
    return async (request, signal) => {
      const own = sameKey?.(request) ?? "";
      if (underWay.includes(own)) throw new CsiStatusError("INTERNAL", "planted: another call is under way");
      underWay.push(own);
      try {
        await Promise.resolve();
        return await call(request, signal);
      } finally {
        underWay.splice(underWay.indexOf(own), 1);
      }
    };
  });

/** Calls that come while another one is under way are served in another way. */
export const inCompany = (
  rpc: string,
  serve: (request: Loose, call: Handler, signal: AbortSignal) => Promise<Loose>,
): Fault =>
  around(rpc, (call) => {
    let underWay = 0;
    return async (request, signal) => {
      const hasCompany = underWay++ > 0;
      try {
        for (let i = 0; i < 50; i++) await Promise.resolve();
        if (!hasCompany) return await call(request, signal);
        return await serve(request, call, signal);
      } finally {
        underWay--;
      }
    };
  });

/** Answers ABORTED while a call for another object is in progress, which CSI does not allow. */
export const abortsCompany = (rpc: string): Fault =>
  inCompany(rpc, async () => {
    throw new CsiStatusError("ABORTED", "planted: another call is under way");
  });

/** Something happens on the machine after the call. */
export const afterwards =
  (rpc: string, act: (host: Host, request: Loose, answer: Loose) => Promise<void>): Fault =>
  (services, host) =>
    around(rpc, (call) => async (request, signal) => {
      const answer = await call(request, signal);
      await act(host, request, answer);
      return answer;
    })(services, host);

/** Records calls that were served. */
export const notes = (rpc: string, note: (request: Loose, answer: Loose) => void): Fault =>
  alters(rpc, (answer, request) => {
    note(request, answer);
    return answer;
  });

/** Numbers equal calls, counting up. */
export function counting(): (key: string) => number {
  const counts = new Map<string, number>();
  return (key) => {
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count;
  };
}

/**
 * A fault that appears once after a crash, for what the driver did before the crash.
 * @param remembers records what was done, by a key
 * @param fault what goes wrong with a key from before the last crash
 */
export function afterCrash(
  remembers: (remember: (key: string) => void) => Fault,
  fault: (isOld: (key: string) => boolean) => Fault,
): Fault {
  let done = new Set<string>();
  return (services, host) => {
    const old = done;
    done = new Set();
    const broken = fault((key) => old.delete(key));
    return all(
      broken,
      remembers((key) => done.add(key)),
    )(services, host);
  };
}
