/**
 * The KubeClient over HTTPS, to any API server.
 *
 * Invariants
 *  - Every call has a deadline on the clock seam, and ends at once when its signal aborts.
 *  - A request is repeated only where that is safe (`retry-delay-ms.ts`).
 *  - Items of lists carry apiVersion and kind, which the server leaves out.
 *  - A watch ends in good order only when the server ended the stream between two events.
 */
import { abortable, type RuntimeEnv, TimeLimit } from "@longshore/runtime";
import type { ClusterConfig, Credential } from "../config/cluster-config.ts";
import {
  type CallOptions,
  type DeleteOptions,
  KubeApiError,
  type KubeClient,
  KubeTransportError,
  type ListOptions,
  type ListPage,
  type Patch,
  type WatchEvents,
  type WatchOptions,
  type WatchStream,
} from "../kube-client.ts";
import { type KubeObject, type ObjectRef, refOf, type Stored } from "../kube-objects.ts";
import { apiVersionOf, type Resource } from "../resources.ts";
import { type ApiResource, Discovery } from "./discovery.ts";
import { fenceOf } from "./fence-signal.ts";
import { type FlowControl, TokenBucket } from "./flow-control.ts";
import {
  type HttpRequest,
  type HttpResponse,
  HttpTransport,
  pathOf,
  wasNeverSent,
} from "./http-transport.ts";
import { completed, type FreshForm, forgetManagedFields } from "./parsing/fresh-object.ts";
import { parsePageWithoutManagedFields, parseWithoutManagedFields } from "./parsing/managed-fields-text.ts";
import { SharedParts } from "./parsing/shared-parts.ts";
import { readWatchEvents } from "./read-watch-events.ts";
import {
  collectionPath,
  listQuery,
  objectPath,
  query,
  requireNamespace,
  watchQuery,
} from "./request-path.ts";
import { type FailedAttempt, parseRetryAfter, retryDelayMs } from "./retry-delay-ms.ts";
import { apiErrorOf, isObjectMissing } from "./status.ts";

/** How the client behaves beyond where it talks to. */
export interface HttpClientOptions {
  /** Limits the client's requests; unlimited when left out. */
  readonly flowControl?: FlowControl;
  /** Deadline of a call that has no shorter one, in milliseconds; default 30 s, for lists twice that. */
  readonly callTimeoutMs?: number;
  /** Lets the server compress answers: for slow links, where a list takes longer to travel than to compress; default off. */
  readonly compression?: boolean;
  /**
   * Returns objects without `metadata.managedFields`, a third of the size of most objects: for controllers, which never
   * read them; default off.
   */
  readonly dropManagedFields?: boolean;
}

/** A client that holds connections. */
export interface HttpKubeClient extends KubeClient {
  /** Closes all connections; calls in progress fail. */
  close(): Promise<void>;
}

/** A client of the API server that `config` names. Connects when first used. */
export function createHttpClient(
  env: RuntimeEnv,
  config: ClusterConfig,
  options: HttpClientOptions = {},
): HttpKubeClient {
  return new HttpClient(env, config, options);
}

const patchTypes: Readonly<Record<Patch["type"], string>> = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
};

/** meta/v1 PartialObjectMetadata; the whole object from a server that does not support it. */
const partialObject = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const partialList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

interface RawList<T extends KubeObject> {
  readonly items?: readonly Stored<T>[] | null;
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
}

class HttpClient implements HttpKubeClient {
  readonly #env: RuntimeEnv;
  readonly #config: ClusterConfig;
  readonly #transport: HttpTransport;
  readonly #discovery: Discovery;
  readonly #bucket: TokenBucket | undefined;
  readonly #callTimeoutMs: number;
  readonly #dropManagedFields: boolean;
  /** By kind. */
  readonly #sharedParts = new Map<string, SharedParts>();

  constructor(env: RuntimeEnv, config: ClusterConfig, options: HttpClientOptions) {
    this.#env = env;
    this.#config = config;
    this.#transport = new HttpTransport(config, options.compression === true);
    this.#discovery = new Discovery(env.clock, (path, signal) => this.#fetchResources(path, signal));
    this.#bucket =
      options.flowControl === undefined ? undefined : new TokenBucket(env.clock, options.flowControl);
    this.#callTimeoutMs = options.callTimeoutMs ?? 30_000;
    this.#dropManagedFields = options.dropManagedFields === true;
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    { signal }: CallOptions,
  ): Promise<Stored<T> | undefined> {
    const path = objectPath(resource, await this.#versionOf(resource, signal), ref);
    try {
      return (await this.#call({ method: "GET", path }, signal)) as Stored<T>;
    } catch (error) {
      if (isObjectMissing(error)) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions): Promise<ListPage<T>> {
    const version = await this.#versionOf(resource, options.signal);
    const path = collectionPath(resource, version, options.namespace) + listQuery(options);
    const timeoutMs = 2 * this.#callTimeoutMs;
    const request: HttpRequest = {
      method: "GET",
      path,
      ...(options.metadataOnly === true ? { accept: partialList } : {}),
    };
    const parse = this.#drops(options) ? parsePageWithoutManagedFields : undefined;
    const raw = (await this.#call(request, options.signal, { timeoutMs, parse })) as RawList<T>;
    const token = raw.metadata?.continue;
    const form = this.#formOf(resource, version, options);
    return {
      // Go writes an empty list as null.
      items: (raw.items ?? []).map((item) => completed(item, form)),
      resourceVersion: raw.metadata?.resourceVersion ?? "",
      continue: token === "" ? undefined : token,
    };
  }

  #drops(options: ListOptions | WatchOptions): boolean {
    return this.#dropManagedFields || options.dropManagedFields === true;
  }

  #formOf(resource: Resource<KubeObject>, version: string, options: ListOptions | WatchOptions): FreshForm {
    const { kind } = resource;
    const dropManagedFields = this.#drops(options);
    let sharedParts: SharedParts | undefined;
    if (options.shareParts === true) {
      sharedParts = this.#sharedParts.get(kind) ?? new SharedParts();
      this.#sharedParts.set(kind, sharedParts);
    }
    return { apiVersion: apiVersionOf(resource, version), kind, dropManagedFields, sharedParts };
  }

  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): WatchStream<T> {
    return { [Symbol.asyncIterator]: () => this.#events(resource, options) };
  }

  /** Opens the watch when the first event is requested, and closes its connection with the last. */
  #events<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): WatchEvents<T> {
    const ended = new AbortController();
    const onAbort = () => ended.abort(options.signal.reason);
    options.signal.addEventListener("abort", onAbort, { once: true });
    const end = () => {
      options.signal.removeEventListener("abort", onAbort);
      ended.abort(new KubeTransportError("the watch was ended by its reader"));
    };
    let opened: Promise<WatchEvents<T>> | undefined;
    let events: WatchEvents<T> | undefined;
    return {
      ready: () => {
        try {
          return events?.ready?.();
        } catch (error) {
          end();
          throw error;
        }
      },
      next: async () => {
        try {
          opened ??= this.#openWatch(resource, options, ended);
          events ??= await opened;
          const next = await events.next();
          if (next.done === true) end();
          return next;
        } catch (error) {
          end();
          throw error;
        }
      },
      return: async () => {
        end();
        return { done: true, value: undefined };
      },
    };
  }

  async #openWatch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions,
    ended: AbortController,
  ): Promise<WatchEvents<T>> {
    options.signal.throwIfAborted();
    const version = await this.#versionOf(resource, options.signal);
    const path = collectionPath(resource, version, options.namespace) + watchQuery(options);
    const request: HttpRequest = {
      method: "GET",
      path,
      ...(options.metadataOnly === true ? { accept: partialObject } : {}),
    };
    // Limits the opening only: a watch that is open has no deadline.
    const limit = new TimeLimit(this.#env.clock, this.#callTimeoutMs, options.signal);
    const end = limit.onEnd((error) => ended.abort(error));
    let response: HttpResponse;
    try {
      response = await this.#authorized(limit, (credential) =>
        this.#transport.watch(request, credential, ended.signal),
      );
    } catch (error) {
      throw this.#lateError(request, limit, error);
    } finally {
      end.cancel();
    }
    if (response.code !== 200) throw await this.#apiError(request, response);
    return readWatchEvents<T>(response.body, resource, this.#formOf(resource, version, options));
  }

  async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    { signal }: CallOptions,
  ): Promise<Stored<T>> {
    const version = await this.#versionOf(resource, signal);
    requireNamespace(resource, object.metadata?.namespace);
    const path = collectionPath(resource, version, object.metadata?.namespace);
    return (await this.#call(
      jsonRequest("POST", path, typed(object, resource, version)),
      signal,
    )) as Stored<T>;
  }

  update<T extends KubeObject>(resource: Resource<T>, object: T, options: CallOptions): Promise<Stored<T>> {
    return this.#put(resource, object, undefined, options.signal);
  }

  updateStatus<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: CallOptions,
  ): Promise<Stored<T>> {
    return this.#put(resource, object, "status", options.signal);
  }

  async #put<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    subresource: string | undefined,
    signal: AbortSignal,
  ): Promise<Stored<T>> {
    const version = await this.#versionOf(resource, signal);
    const path = objectPath(resource, version, refOf(object), subresource);
    return (await this.#call(
      jsonRequest("PUT", path, typed(object, resource, version)),
      signal,
    )) as Stored<T>;
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options: CallOptions & { readonly subresource?: "status" | "scale" },
  ): Promise<Stored<T>> {
    const version = await this.#versionOf(resource, options.signal);
    const path = objectPath(resource, version, ref, options.subresource);
    const parameters = query({
      fieldManager: patch.fieldManager,
      force: patch.force === undefined ? undefined : String(patch.force),
      dryRun: patch.dryRun === true ? "All" : undefined,
    });
    const request: HttpRequest = {
      method: "PATCH",
      path: path + parameters,
      contentType: patchTypes[patch.type],
      body: JSON.stringify(patch.body),
    };
    return (await this.#call(request, options.signal)) as Stored<T>;
  }

  async delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: DeleteOptions,
  ): Promise<boolean> {
    const { signal, uid, resourceVersion, gracePeriodSeconds, propagationPolicy } = options;
    const path = objectPath(resource, await this.#versionOf(resource, signal), ref);
    const preconditions = {
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    };
    try {
      await this.#call(jsonRequest("DELETE", path, body), signal);
      return true;
    } catch (error) {
      if (isObjectMissing(error)) return false;
      throw error;
    }
  }

  async createSubresource<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    subresource: string,
    body: KubeObject,
    { signal }: CallOptions,
  ): Promise<KubeObject> {
    const path = objectPath(resource, await this.#versionOf(resource, signal), ref, subresource);
    const isEviction = subresource === "eviction";
    const sent = isEviction ? { ...body, apiVersion: await this.#discovery.evictionVersion(signal) } : body;
    const request = jsonRequest("POST", path, sent);
    return (await this.#call(request, signal, { tooManyRequestsIsFinal: isEviction })) as KubeObject;
  }

  servedVersion(resource: Resource<KubeObject>, { signal }: CallOptions): Promise<string | undefined> {
    return this.#discovery.servedVersion(resource, signal);
  }

  /** A resource with one version needs no discovery: if it is not served, the server refuses the request. */
  async #versionOf(resource: Resource<KubeObject>, signal: AbortSignal): Promise<string> {
    if (resource.versions.length === 1) return resource.versions[0];
    return (await this.#discovery.servedVersion(resource, signal)) ?? resource.versions[0];
  }

  async #fetchResources(path: string, signal: AbortSignal): Promise<readonly ApiResource[] | undefined> {
    try {
      const list = (await this.#call({ method: "GET", path }, signal)) as {
        resources?: readonly ApiResource[];
      };
      return list.resources ?? [];
    } catch (error) {
      if (error instanceof KubeApiError && error.code === 404) return undefined;
      throw error;
    }
  }

  /** Sends the request, retries where that is safe, and returns the parsed response. */
  async #call(
    request: HttpRequest,
    signal: AbortSignal,
    options: {
      readonly timeoutMs?: number;
      readonly tooManyRequestsIsFinal?: boolean;
      readonly parse?: ((body: Buffer) => unknown) | undefined;
    } = {},
  ): Promise<unknown> {
    const { timeoutMs = this.#callTimeoutMs, tooManyRequestsIsFinal = false } = options;
    const parse = options.parse ?? (this.#dropManagedFields ? parseWithoutOwnManagedFields : parseAll);
    signal.throwIfAborted();
    const { clock } = this.#env;
    const limit = new TimeLimit(clock, timeoutMs, signal);
    const fence = fenceOf(signal);
    const fenced: HttpRequest = fence === undefined ? request : { ...request, fence };
    const send = (credential: Credential) => this.#transport.call(fenced, credential, limit);
    try {
      for (let attempt = 1; ; attempt++) {
        let failed: FailedAttempt;
        let failure: unknown;
        try {
          const { code, body, retryAfter } = await this.#authorized(limit, send);
          if (code >= 200 && code < 300) return parseJson(request, body, parse);
          failure = apiErrorOf(code, body.toString(), nameOf(request));
          failed = { kind: "answered", code, retryAfterMs: parseRetryAfter(retryAfter, clock.now()) };
        } catch (error) {
          if (!(error instanceof KubeTransportError)) throw error;
          failure = error;
          failed = { kind: wasNeverSent(error) ? "notSent" : "broken" };
        }
        const delayMs = retryDelayMs({ method: request.method, tooManyRequestsIsFinal }, failed, attempt);
        if (delayMs === undefined) throw failure;
        if (delayMs > 0) await limit.within((within) => clock.sleep(delayMs, within));
      }
    } catch (error) {
      throw this.#lateError(request, limit, error);
    }
  }

  /** One attempt; a credential that is refused is renewed once. */
  async #authorized<R extends { readonly code: number; discard?(): void }>(
    limit: TimeLimit,
    send: (credential: Credential) => Promise<R>,
  ): Promise<R> {
    for (let attempt = 1; ; attempt++) {
      const given = this.#credential(limit);
      const credential = given instanceof Promise ? await given : given;
      const bucket = this.#bucket;
      if (bucket !== undefined) await limit.within((signal) => bucket.take(signal));
      const response = await send(credential);
      if (response.code !== 401 || attempt > 1) return response;
      this.#config.credentials.refused();
      const renewed = await this.#credential(limit);
      const changed =
        renewed.authorization !== credential.authorization ||
        renewed.certificate?.cert !== credential.certificate?.cert;
      // The same credential would be refused again.
      if (!changed) return response;
      response.discard?.();
    }
  }

  #credential(limit: TimeLimit): Credential | Promise<Credential> {
    const given = this.#config.credentials.current(this.#env.clock, limit.signal);
    return given instanceof Promise ? this.#credentialInTime(given, limit) : given;
  }

  async #credentialInTime(given: Promise<Credential>, limit: TimeLimit): Promise<Credential> {
    try {
      return await limit.within((signal) => abortable(given, signal));
    } catch (error) {
      if (limit.signal.aborted || limit.hasEnded(error)) throw error;
      throw new KubeTransportError(`no credential for ${this.#config.server}`, { cause: error });
    }
  }

  async #apiError(request: HttpRequest, response: HttpResponse): Promise<KubeApiError> {
    return apiErrorOf(response.code, (await readAll(response.body)).toString(), nameOf(request));
  }

  /** The end of the limit is a transport failure; every other error stays what it is, the caller's own deadline among them. */
  #lateError(request: HttpRequest, limit: TimeLimit, error: unknown): unknown {
    if (!limit.hasEnded(error)) return error;
    const what = `${request.method} ${this.#config.server}${pathOf(request)}`;
    return new KubeTransportError(`${what}: no answer within ${limit.ms} ms`, { cause: error });
  }
}

function jsonRequest(method: HttpRequest["method"], path: string, body: unknown): HttpRequest {
  return { method, path, contentType: "application/json", body: JSON.stringify(body) };
}

/** The object under the version it is sent to. */
function typed<T extends KubeObject>(object: T, resource: Resource<T>, version: string): T {
  return { ...object, apiVersion: apiVersionOf(resource, version), kind: resource.kind };
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The request, for errors. */
const nameOf = (request: HttpRequest): string => `${request.method} ${pathOf(request)}`;

const parseAll = (body: Buffer): unknown => JSON.parse(body.toString());

const itself = (object: KubeObject) => object;

function parseWithoutOwnManagedFields(body: Buffer): unknown {
  return forgetManagedFields(parseWithoutManagedFields<KubeObject>(body, 0, body.length, itself));
}

function parseJson(request: HttpRequest, body: Buffer, parse: (body: Buffer) => unknown): unknown {
  try {
    return parse(body);
  } catch (error) {
    throw new KubeTransportError(`${nameOf(request)}: the answer is not JSON`, { cause: error });
  }
}
