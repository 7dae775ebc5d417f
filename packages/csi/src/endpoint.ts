/** Where a driver listens: a unix socket, by path or as `unix://` URL (docs/behaviour/csi-spec-notes.md 1, Endpoint). */

/** Bytes that fit into `sockaddr_un.sun_path`, without its terminating zero. */
const longestSocketPath = 107;

/** The endpoint cannot be used. */
export class CsiEndpointError extends Error {
  override readonly name = "CsiEndpointError";
}

/**
 * The path of the socket that an endpoint means: an absolute path, `unix:///path` or `unix:/path`.
 * @throws CsiEndpointError when it is relative or longer than a unix socket's path may be
 */
export function socketPathOf(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/)?/, "");
  if (!path.startsWith("/")) {
    throw new CsiEndpointError(`endpoint "${endpoint}": write the absolute path of a unix socket`);
  }
  const bytes = new TextEncoder().encode(path).length;
  if (bytes > longestSocketPath) {
    throw new CsiEndpointError(
      `socket path ${path} has ${bytes} bytes, a unix socket takes ${longestSocketPath}: use a shorter directory`,
    );
  }
  return path;
}
