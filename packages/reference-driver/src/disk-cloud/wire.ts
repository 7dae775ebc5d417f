/**
 * The disk cloud's protocol: `POST /v1/OPERATION` with the caller and the arguments as JSON, answered
 * with `{result}` or `{error: {code, message}}`. Sizes are decimal strings.
 */
import {
  type CloudCaller,
  type CloudCredentials,
  CloudError,
  type CloudErrorCode,
  type CloudProvider,
  cloudProviders,
} from "@longshore/volumes";

/** A request's body. */
export interface WireRequest {
  readonly caller: CloudCaller;
  readonly args: Readonly<Record<string, unknown>>;
}

/** An answer's body. */
export type WireAnswer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: CloudErrorCode; readonly message: string } };

/** HTTP status of each failure, for readers of the traffic; the client reads the body. */
export const statusOf: Readonly<Record<CloudErrorCode, number>> = {
  NotFound: 404,
  InUse: 409,
  AlreadyExists: 409,
  LimitExceeded: 409,
  InvalidArgument: 400,
  ZoneMismatch: 400,
  Throttled: 429,
  NoSpace: 507,
  Unauthenticated: 401,
  Unavailable: 503,
};

/** JSON with sizes as strings. An `undefined` result becomes null. */
export function encode(body: WireRequest | WireAnswer): string {
  return JSON.stringify(body, (_, value) => (typeof value === "bigint" ? value.toString() : value));
}

const sizeFields: ReadonlySet<string> = new Set([
  "sizeBytes",
  "createdBytes",
  "availableBytes",
  "largestBytes",
]);

/** The reverse of {@link encode}: sizes become bigints again. */
export function decode(text: string): unknown {
  return JSON.parse(text, (key, value) =>
    sizeFields.has(key) && typeof value === "string" ? bytesOf(value) : value,
  );
}

function bytesOf(text: string): bigint {
  if (!/^-?\d{1,30}$/.test(text)) throw new CloudError("InvalidArgument", "sizeBytes is not a number");
  return BigInt(text);
}

/** The body of a request. @throws CloudError InvalidArgument naming the field */
export function parseRequest(text: string): WireRequest {
  let body: Partial<WireRequest> | null;
  try {
    body = decode(text) as Partial<WireRequest> | null;
  } catch (cause) {
    if (cause instanceof CloudError) throw cause;
    throw new CloudError("InvalidArgument", "the request is not JSON: see the protocol", { cause });
  }
  const caller: Partial<CloudCaller> = body?.caller ?? {};
  if (caller.path !== "in-tree" && caller.path !== "csi") {
    throw new CloudError("InvalidArgument", "caller.path of the request must be in-tree or csi");
  }
  if (typeof caller.component !== "string" || caller.component === "") {
    throw new CloudError("InvalidArgument", "caller.component of the request is missing");
  }
  const provider = providerArg(caller.provider, "caller.provider of the request");
  const { path, component } = caller;
  return {
    caller: { ...(provider === undefined ? {} : { provider }), path, component },
    args: body?.args ?? {},
  };
}

/** One of the providers, or undefined where none is named. @param what the field's name @throws CloudError InvalidArgument */
export function providerArg(value: unknown, what: string): CloudProvider | undefined {
  const provider = cloudProviders.find((known) => known === value);
  if (provider === undefined && value !== undefined) {
    throw new CloudError("InvalidArgument", `${what} must be one of ${cloudProviders.join(", ")}`);
  }
  return provider;
}

/** A map of strings. @throws CloudError InvalidArgument */
export function textMapArg(args: WireRequest["args"], name: string): Readonly<Record<string, string>> {
  const value = args[name];
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isMap || Object.values(value).some((entry) => typeof entry !== "string")) {
    throw new CloudError("InvalidArgument", `argument ${name} must be a map of strings`);
  }
  return value as Readonly<Record<string, string>>;
}

/** User and key; a text that says what is wrong contains neither. @throws CloudError InvalidArgument */
export function credentialsArg(args: WireRequest["args"]): CloudCredentials | undefined {
  if (args.credentials === undefined) return undefined;
  const { user, key } = textMapArg(args, "credentials");
  if (user === undefined || key === undefined) {
    throw new CloudError("InvalidArgument", "argument credentials must have user and key");
  }
  return { user, key };
}

/** A string argument. @throws CloudError InvalidArgument */
export function textArg(args: WireRequest["args"], name: string): string {
  const value = args[name];
  if (typeof value !== "string") throw new CloudError("InvalidArgument", `argument ${name} must be a string`);
  return value;
}

/** A count or the number of a block. @throws CloudError InvalidArgument */
export function countArg(args: WireRequest["args"], name: string): number {
  const value = args[name];
  if (!Number.isSafeInteger(value) || (value as number) < 0) {
    throw new CloudError("InvalidArgument", `argument ${name} must be a number from 0 on`);
  }
  return value as number;
}

/** A list of strings. @throws CloudError InvalidArgument */
export function textsArg(args: WireRequest["args"], name: string): readonly string[] {
  const value = args[name];
  if (!Array.isArray(value) || value.some((entry) => typeof entry !== "string")) {
    throw new CloudError("InvalidArgument", `argument ${name} must be a list of strings`);
  }
  return value as readonly string[];
}

/** A size argument. @throws CloudError InvalidArgument */
export function sizeArg(args: WireRequest["args"]): bigint {
  const value = args.sizeBytes;
  if (typeof value !== "bigint") throw new CloudError("InvalidArgument", "argument sizeBytes must be a size");
  return value;
}
