/** Authentication: bearer tokens first, then client certificates, then, where that is allowed, the anonymous user. */

import type { UserInfo } from "../api/api-request.ts";
import { apiError } from "../api/errors.ts";
import { authenticated, type TokenIdentity, type TokenProblem } from "./token-authenticator.ts";

/** The credentials of a request. */
export interface Credentials {
  readonly authorization: string | undefined;
  /** Subject of a client certificate that our own authority has signed. */
  readonly certificate:
    | { readonly commonName: string; readonly organizations: readonly string[] }
    | undefined;
}

/** Returns the user of a request. @throws KubeApiError 401 for credentials that are not valid */
export type Authenticator = (credentials: Credentials) => UserInfo;

/** The user of requests without credentials. */
export const anonymousUser: UserInfo = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/** Options of {@link createAuthenticator}. */
export interface AuthenticatorOptions {
  /** Authenticates a bearer token. */
  readonly authenticateToken: (token: string) => TokenIdentity | TokenProblem;
  /** Requests without credentials are let in as anonymous rather than refused; default false. */
  readonly anonymousAuth?: boolean;
}

/** An authenticator for tokens and for client certificates. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  return ({ authorization, certificate }) => {
    const bearer = /^bearer\s+(\S+)\s*$/i.exec(authorization ?? "")?.[1];
    if (bearer !== undefined) {
      const found = options.authenticateToken(bearer);
      if ("problem" in found) throw unauthorized();
      return found.user;
    }
    if (certificate !== undefined) {
      return authenticated({ name: certificate.commonName, groups: certificate.organizations });
    }
    if (options.anonymousAuth !== true) throw unauthorized();
    return anonymousUser;
  };
}

function unauthorized(): Error {
  return apiError(401, "Unauthorized", "Unauthorized");
}
