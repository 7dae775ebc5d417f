/** The address and credentials for one API server, from any source. */
import type { Clock, Host } from "@longshore/runtime";

/** What reading a configuration needs of the machine. */
export type ConfigHost = Pick<Host, "readFile" | "runProgram">;

/** The credentials of the client. Secret: never in a log or an error. */
export interface Credential {
  /** The value of the Authorization header. */
  readonly authorization?: string;
  /** A client certificate and its key, as PEM. */
  readonly certificate?: { readonly cert: string; readonly key: string };
}

/** Returns the current credential, synchronously when cached. Rereads files and reruns programs when it expires. */
export interface CredentialSource {
  current(clock: Clock, signal: AbortSignal): Credential | Promise<Credential>;
  /** The server refused the credential (401): do not return it from a cache again. */
  refused(): void;
}

/** One API server, as one user. */
export interface ClusterConfig {
  /** `https://host:port`, perhaps with a path. */
  readonly server: string;
  /** Certificate authority as PEM; the machine's own when left out. */
  readonly ca?: string;
  /** Name in the server's certificate, where it is not the host of `server`. */
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  readonly credentials: CredentialSource;
  /** Default namespace of the context. */
  readonly namespace?: string;
}

/** A configuration cannot be used: which file, which field, and what to do. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** No credential: an anonymous user. */
export const anonymous: CredentialSource = fixedCredential({});

/** A credential that never changes. */
export function fixedCredential(credential: Credential): CredentialSource {
  return { current: () => credential, refused() {} };
}

/** Files are read again after this time, so that a rotated one is picked up (client-go: one minute). */
const REREAD_MS = 60_000;

/** A credential made by `read`, and made again every minute or when it was refused. A failed `read` leaves the old one. */
export function rereadCredential(read: (signal: AbortSignal) => Promise<Credential>): CredentialSource {
  let cached: { readonly credential: Credential; readonly readMs: number } | undefined;
  const readAgain = async (nowMs: number, signal: AbortSignal): Promise<Credential> => {
    try {
      cached = { credential: await read(signal), readMs: nowMs };
    } catch (error) {
      // A file that is being replaced; what we have may still do.
      if (cached === undefined) throw error;
    }
    return cached.credential;
  };
  return {
    current(clock, signal) {
      const nowMs = clock.monotonicMs();
      if (cached === undefined || nowMs - cached.readMs >= REREAD_MS) return readAgain(nowMs, signal);
      return cached.credential;
    },
    refused() {
      cached = undefined;
    },
  };
}
