/** Who asks: bearer tokens and client certificates. */
import { createHash, timingSafeEqual } from "node:crypto";
import { apiError } from "../api/errors.ts";
import type { UserInfo } from "../registry/request.ts";

/** What a request carries to prove who sent it. */
export interface Credentials {
  readonly authorization: string | undefined;
  /** Subject of a client certificate that our own authority has signed. */
  readonly certificate:
    | { readonly commonName: string; readonly organizations: readonly string[] }
    | undefined;
}

/** Says who asks. @throws KubeApiError 401 for credentials that are not valid */
export type Authenticator = (credentials: Credentials) => UserInfo;

/** Somebody without credentials. */
export const anonymousUser: UserInfo = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/** Options of {@link createAuthenticator}. */
export interface AuthenticatorOptions {
  /** Who holds which token. */
  readonly tokens: readonly { readonly token: string; readonly user: UserInfo }[];
  /** Requests without credentials are refused rather than let in as anonymous. */
  readonly anonymousAuth?: boolean;
}

/** An authenticator for a fixed set of tokens, and for client certificates. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const known = options.tokens.map(({ token, user }) => ({ digest: digest(token), user }));
  return ({ authorization, certificate }) => {
    const bearer = /^bearer\s+(\S+)\s*$/i.exec(authorization ?? "")?.[1];
    if (bearer !== undefined) {
      // Every token is compared, each in the same time whatever was sent.
      const given = digest(bearer);
      const matching = known.filter((entry) => timingSafeEqual(entry.digest, given));
      if (matching[0] === undefined) throw unauthorized();
      return authenticated(matching[0].user);
    }
    if (certificate !== undefined) {
      return authenticated({ name: certificate.commonName, groups: certificate.organizations });
    }
    if (options.anonymousAuth === false) throw unauthorized();
    return anonymousUser;
  };
}

function authenticated(user: UserInfo): UserInfo {
  const groups = new Set([...user.groups, "system:authenticated"]);
  return { ...user, groups: [...groups] };
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function unauthorized(): Error {
  return apiError(401, "Unauthorized", "Unauthorized");
}
