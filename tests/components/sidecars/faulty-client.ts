/** A client whose server refuses, stalls, goes away or forgets, as a fault says. */
import { KubeApiError, type KubeClient, KubeTransportError } from "@longshore/kube";

/** One request on its way. */
export interface FaultyRequest {
  /** A member of KubeClient, e.g. `patch`. */
  readonly verb: string;
  readonly kind: string;
  readonly isWrite: boolean;
  /** How many requests came before this one. */
  readonly number: number;
  /** The caller's. */
  readonly signal: AbortSignal;
}

/** What is wrong with the server or the way to it. */
export interface ApiFault {
  /** Stands between a request and its answer; left out: nothing does. */
  request?<T>(request: FaultyRequest, send: () => Promise<T>): Promise<T>;
  /** Stands between a watch and who listens; left out: nothing does. */
  watch?<T>(events: AsyncIterable<T>, signal: AbortSignal): AsyncIterable<T>;
}

const writes = new Set(["create", "update", "updateStatus", "patch", "delete", "createSubresource"]);

/** `kube` with the fault. */
export function faultyClient(kube: KubeClient, fault: ApiFault): KubeClient {
  let number = 0;
  return new Proxy(kube, {
    get(target, verb: keyof KubeClient) {
      const member = target[verb] as (...args: unknown[]) => unknown;
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        const [{ kind = "" }, ...rest] = args as [{ readonly kind?: string }, ...unknown[]];
        const { signal } = rest.at(-1) as { readonly signal: AbortSignal };
        if (verb === "watch") {
          const events = member.apply(target, args) as AsyncIterable<unknown>;
          return fault.watch?.(events, signal) ?? events;
        }
        const send = () => member.apply(target, args) as Promise<unknown>;
        const request = { verb, kind, isWrite: writes.has(verb), number: number++, signal };
        return fault.request?.(request, send) ?? send();
      };
    },
  });
}

/** The failure of a request that the server refuses with this code and reason. */
export function refused(code: number, reason: string, retryAfterSeconds?: number): KubeApiError {
  const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
  return new KubeApiError({
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code,
    reason,
    message: `the test refuses: ${reason}`,
    ...details,
  });
}

/** The failure of a request whose answer did not come. */
export const noAnswer = (): KubeTransportError => new KubeTransportError("the test lost the connection");
