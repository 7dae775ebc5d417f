/**
 * The client that calls the registry in its own process: objects are shared, nothing is
 * serialised, and no answer takes more than microtasks (unless the store has a disk behind it).
 */
import {
  type CallOptions,
  type DeleteOptions,
  isNotFound,
  KubeApiError,
  type KubeClient,
  type KubeObject,
  KubeTransportError,
  type ListOptions,
  type ListPage,
  type ObjectRef,
  type Patch,
  type Resource,
  type Status,
  type Stored,
  type WatchEvent,
  type WatchOptions,
} from "@longshore/kube/basics";
import type { ApiAnswer, ApiQuery, ApiRequest, UserInfo, Verb, WatchStream } from "../api/api-request.ts";
import { attributesOfRequest } from "../authorization/authorizer.ts";
import type { Registry } from "../registry/registry.ts";
import type { AnsweredRequests } from "../webhooks/answered-requests.ts";

/** What the client needs of its server. */
export interface InProcessServer {
  readonly registry: Registry;
  readonly requests: AnsweredRequests;
  /** False once the server has stopped. */
  readonly running: boolean;
}

/** A client that calls the registry in its own process. */
export class InProcessClient implements KubeClient {
  readonly #server: InProcessServer;
  readonly #user: UserInfo;

  constructor(server: InProcessServer, user: UserInfo) {
    this.#server = server;
    this.#user = user;
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    { signal }: CallOptions,
  ): Promise<Stored<T> | undefined> {
    try {
      return (await this.#object(resource, "get", ref, signal)) as Stored<T>;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions): Promise<ListPage<T>> {
    const answer = await this.#call(
      {
        ...this.#target(resource, "list"),
        ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
        query: queryOf(options),
      },
      options.signal,
    );
    if (answer.type !== "list") throw new KubeTransportError(`a list was answered with ${answer.type}`);
    const items = answer.items as readonly Stored<T>[];
    return {
      items: options.metadataOnly === true ? items.map(partial) : items,
      resourceVersion: answer.resourceVersion,
      continue: answer.continue,
    };
  }

  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const answer = await this.#call(
      {
        ...this.#target(resource, "watch"),
        ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
        query: { ...queryOf(options), allowWatchBookmarks: true },
      },
      options.signal,
    );
    if (answer.type !== "watch") throw new KubeTransportError(`a watch was answered with ${answer.type}`);
    yield* events<T>(answer.stream, options.metadataOnly === true, options.signal);
  }

  async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    { signal }: CallOptions,
  ): Promise<Stored<T>> {
    const { namespace } = object.metadata ?? {};
    const ref = namespace === undefined ? {} : { namespace };
    return (await this.#object(resource, "create", ref, signal, { body: object })) as Stored<T>;
  }

  async update<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    { signal }: CallOptions,
  ): Promise<Stored<T>> {
    return (await this.#object(resource, "update", refOfBody(object), signal, { body: object })) as Stored<T>;
  }

  async updateStatus<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    { signal }: CallOptions,
  ): Promise<Stored<T>> {
    const rest = { body: object, subresource: "status" };
    return (await this.#object(resource, "update", refOfBody(object), signal, rest)) as Stored<T>;
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options: CallOptions & { readonly subresource?: "status" | "scale" },
  ): Promise<Stored<T>> {
    const query: ApiQuery = {
      ...(patch.fieldManager === undefined ? {} : { fieldManager: patch.fieldManager }),
      ...(patch.force === undefined ? {} : { force: patch.force }),
      ...(patch.dryRun === true ? { dryRun: ["All"] } : {}),
    };
    return (await this.#object(resource, "patch", ref, options.signal, {
      body: patch.body,
      patchType: patch.type,
      query,
      ...(options.subresource === undefined ? {} : { subresource: options.subresource }),
    })) as Stored<T>;
  }

  async delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: DeleteOptions,
  ): Promise<boolean> {
    const { signal, uid, resourceVersion, ...rest } = options;
    const preconditions = {
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
    const body = { ...rest, ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }) };
    try {
      await this.#object(resource, "delete", ref, signal, { body });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  createSubresource<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    subresource: string,
    body: KubeObject,
    { signal }: CallOptions,
  ): Promise<KubeObject> {
    return this.#object(resource, "create", ref, signal, { body, subresource });
  }

  async servedVersion(resource: Resource<KubeObject>, { signal }: CallOptions): Promise<string | undefined> {
    signal.throwIfAborted();
    return this.#servedVersion(resource);
  }

  #servedVersion(resource: Resource<KubeObject>): string | undefined {
    const of = this.#server.registry.context.kinds.find(resource.group, resource.plural);
    const served: readonly string[] = of?.versions ?? [];
    return resource.versions.find((version) => served.includes(version));
  }

  #target(resource: Resource<KubeObject>, verb: Verb) {
    return {
      verb,
      group: resource.group,
      version: this.#servedVersion(resource) ?? resource.versions[0],
      resource: resource.plural,
      user: this.#user,
      // As the client that goes over HTTPS says it.
      userAgent: "longshore",
    };
  }

  async #object(
    resource: Resource<KubeObject>,
    verb: Verb,
    ref: Partial<ObjectRef>,
    signal: AbortSignal,
    rest: Partial<ApiRequest> = {},
  ): Promise<KubeObject> {
    const answer = await this.#call(
      {
        query: {},
        ...this.#target(resource, verb),
        ...(ref.name === undefined ? {} : { name: ref.name }),
        ...(resource.namespaced && ref.namespace !== undefined ? { namespace: ref.namespace } : {}),
        ...rest,
      },
      signal,
    );
    if (answer.type !== "object") throw new KubeTransportError(`${verb} was answered with a ${answer.type}`);
    return answer.object;
  }

  async #call(request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> {
    signal.throwIfAborted();
    if (!this.#server.running) throw new KubeTransportError("the API server has stopped");
    const { registry } = this.#server;
    registry.authorize(attributesOfRequest(request));
    const answered = this.#server.requests.answer(request, { signal: () => signal, warn: () => {} });
    const answer = answered instanceof Promise ? await answered : answered;
    const durable = registry.context.store.durable();
    if (durable !== undefined) await durable;
    return answer;
  }
}

function refOfBody(object: KubeObject): Partial<ObjectRef> {
  const { name, namespace } = object.metadata ?? {};
  return { ...(name === undefined ? {} : { name }), ...(namespace === undefined ? {} : { namespace }) };
}

function queryOf(options: ListOptions & WatchOptions): ApiQuery {
  const { namespace: _n, signal: _s, metadataOnly: _m, ...query } = options;
  return query.sendInitialEvents === true ? { ...query, resourceVersionMatch: "NotOlderThan" } : query;
}

/** What meta/v1 PartialObjectMetadata keeps of an object. */
function partial<T extends KubeObject>({ apiVersion, kind, metadata }: Stored<T>): Stored<T> {
  return { apiVersion, kind, metadata } as Stored<T>;
}

async function* events<T extends KubeObject>(
  stream: WatchStream,
  metadataOnly: boolean,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const close = () => stream.close();
  signal.addEventListener("abort", close, { once: true });
  try {
    signal.throwIfAborted();
    for (let item = await stream.next(); item !== undefined; item = await stream.next()) {
      signal.throwIfAborted();
      if (item.type === "ERROR") throw new KubeApiError(item.status as Status);
      const event = item as WatchEvent<T>;
      yield metadataOnly && event.type !== "BOOKMARK" ? { ...event, object: partial(event.object) } : event;
    }
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", close);
    stream.close();
  }
}
