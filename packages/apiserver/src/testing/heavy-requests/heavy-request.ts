/**
 * Requests that an API server permits and that are as heavy as they can be: none of them may keep other clients
 * waiting. `npm run bench -- limits` sends them to our server and to the real one.
 */

/** Sends one request; a text or bytes go as they are, any other body as JSON. Never throws for a status. */
export type SendJson = (
  method: string,
  path: string,
  body?: unknown,
  contentType?: string,
) => Promise<{ readonly status: number; readonly body: unknown }>;

/** A permitted request that costs the server as much as possible. */
export interface HeavyRequest {
  readonly name: string;
  /** Makes what the request needs; others do not wait meanwhile. */
  prepare(send: SendJson): Promise<void>;
  /** Sends the request. Returns the status of its answer. */
  run(send: SendJson): Promise<number>;
}

/** `count` values. */
export function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

/** An object of `count` members, made from their names and values. */
export function members<T>(count: number, make: (index: number) => readonly [string, T]): Record<string, T> {
  return Object.fromEntries(many(count, make));
}

/** The namespace of all objects of heavy requests. */
const namespace = "/api/v1/namespaces/default";

/** The path of a collection of the core group in the namespace that is used, or of an object in it. */
export function corePath(resource: string, name?: string): string {
  return `${namespace}/${resource}${name === undefined ? "" : `/${name}`}`;
}

/** A create of one object. */
export function creating(
  name: string,
  path: string,
  make: () => unknown,
  contentType?: string,
): HeavyRequest {
  return {
    name,
    prepare: () => Promise.resolve(),
    run: async (send) => (await send("POST", path, make(), contentType)).status,
  };
}

/** A change of an object that is made first. */
export function changing(options: {
  readonly name: string;
  readonly path: string;
  /** The object, with its name. */
  readonly of: { readonly metadata: { readonly name: string } };
  readonly contentType: string;
  readonly body: () => unknown;
  readonly query?: string;
}): HeavyRequest {
  const { name, path, of, contentType, body, query = "" } = options;
  return {
    name,
    async prepare(send) {
      const { status, body: answer } = await send("POST", path, of);
      if (status !== 201)
        throw new Error(`${name}: the object was not made: ${JSON.stringify(answer)?.slice(0, 300)}`);
    },
    run: async (send) =>
      (await send("PATCH", `${path}/${of.metadata.name}${query}`, body(), contentType)).status,
  };
}
