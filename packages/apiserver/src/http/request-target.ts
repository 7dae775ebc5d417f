/** Where a request goes: the path as it is meant, and the query. Read once, by hand: `URL` would resolve `..` in it. */
import { badRequest } from "../api/errors.ts";

/** The path and the query of a request. */
export interface RequestTarget {
  /** Percent-decoded as a whole, so that `%2F` is a slash like any other, and otherwise as it came. */
  readonly path: string;
  readonly params: URLSearchParams;
}

/** Reads the target of a request line; the name of a host in it (proxies send one) means nothing. @throws KubeApiError 400 */
export function requestTarget(url: string): RequestTarget {
  const local = url.startsWith("/") ? url : url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, "");
  const end = local.indexOf("?");
  const path = end < 0 ? local : local.slice(0, end);
  return {
    path: path.includes("%") ? decoded(path) : path === "" ? "/" : path,
    params: new URLSearchParams(end < 0 ? "" : local.slice(end + 1)),
  };
}

function decoded(path: string): string {
  if (/%(?![0-9a-f]{2})/i.test(path)) throw badRequest("the path of the request cannot be read");
  try {
    return decodeURIComponent(path);
  } catch {
    // Bytes that are no UTF-8 name nothing: they are kept as what stands for such bytes.
    const bytes = path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    return Buffer.from(bytes, "latin1").toString("utf8");
  }
}
