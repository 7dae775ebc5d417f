/** Failed answers as typed errors. */
import { KubeApiError, type Status } from "../kube-client.ts";

const reasonsByCode: ReadonlyMap<number, string> = new Map([
  [400, "BadRequest"],
  [401, "Unauthorized"],
  [403, "Forbidden"],
  [404, "NotFound"],
  [405, "MethodNotAllowed"],
  [409, "Conflict"],
  [410, "Gone"],
  [422, "Invalid"],
  [429, "TooManyRequests"],
  [500, "InternalError"],
  [503, "ServiceUnavailable"],
  [504, "Timeout"],
]);

/** The error of an answer: its Status, or one made up for an answer that carries none (a proxy's, say). */
export function apiErrorOf(code: number, body: string, request: string): KubeApiError {
  const parsed = parseStatus(body);
  if (parsed !== undefined) return new KubeApiError({ ...parsed, code: parsed.code ?? code });
  const reason = reasonsByCode.get(code) ?? "Unknown";
  const said = body.trim().slice(0, 200);
  return new KubeApiError({
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code,
    reason,
    message: `${request}: the server answered ${code}${said === "" ? "" : `: ${said}`}`,
  });
}

/** The error that an ERROR event of a watch carries. */
export function watchErrorOf(object: unknown): KubeApiError {
  const status = asStatus(object);
  return new KubeApiError(
    status ?? {
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      code: 500,
      reason: "InternalError",
      message: "the watch ended with an error of unknown form",
    },
  );
}

/** True when the answer says that this very object does not exist, rather than that its kind is not served. */
export function isObjectMissing(error: unknown): boolean {
  return error instanceof KubeApiError && error.code === 404 && (error.status.details?.name ?? "") !== "";
}

function parseStatus(body: string): Status | undefined {
  try {
    return asStatus(JSON.parse(body));
  } catch {
    return undefined;
  }
}

function asStatus(value: unknown): Status | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  return (value as { kind?: unknown }).kind === "Status" ? (value as Status) : undefined;
}
