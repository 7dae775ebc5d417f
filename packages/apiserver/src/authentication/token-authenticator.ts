/** Bearer tokens: the user of a token, and its audiences. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { UserInfo } from "../api/api-request.ts";

/** The user of a token, and the requested audiences for which it is valid. */
export interface TokenIdentity {
  readonly user: UserInfo;
  readonly audiences: readonly string[];
}

/** Why a token that is known for what it is cannot be accepted. */
export interface TokenProblem {
  readonly problem: string;
}

/**
 * Knows tokens of one sort (a static list, service accounts). Synchronous: what a token is bound to is looked up in the store
 * at each use, so that a deleted account or pod ends the token at once. It does not throw; the authenticator asks each
 * sort in turn and answers 401 when none accepts the token. Errors and logs never contain a token.
 */
export interface TokenAuthenticator {
  /** The identity of the token; undefined when it is not a token of this sort. */
  authenticateToken(token: string, audiences: readonly string[]): TokenIdentity | TokenProblem | undefined;
}

/** A token that is configured at start, and its user. */
export interface StaticToken {
  readonly token: string;
  readonly user: UserInfo;
}

/** An authenticator of a fixed set of tokens, all of which are valid for `audience`. */
export function staticTokens(tokens: readonly StaticToken[], audience: string): TokenAuthenticator {
  const known = tokens.map(({ token, user }) => ({ digest: digest(token), user }));
  return {
    authenticateToken(token, audiences) {
      // Compares every token, each in constant time.
      const given = digest(token);
      const matching = known.filter((entry) => timingSafeEqual(entry.digest, given));
      if (matching[0] === undefined || !audiences.includes(audience)) return undefined;
      return { user: matching[0].user, audiences: [audience] };
    },
  };
}

/** Asks each in order; the first that knows the holder wins. A token that none accepts gets all their reasons. */
export function anyToken(authenticators: readonly TokenAuthenticator[]): {
  authenticateToken(token: string, audiences: readonly string[]): TokenIdentity | TokenProblem;
} {
  return {
    authenticateToken(token, audiences) {
      const problems = ["invalid bearer token"];
      for (const authenticator of authenticators) {
        const found = authenticator.authenticateToken(token, audiences);
        if (found === undefined) continue;
        if ("user" in found) return { ...found, user: authenticated(found.user) };
        problems.push(found.problem);
      }
      return { problem: problems.length === 1 ? (problems[0] as string) : `[${problems.join(", ")}]` };
    },
  };
}

/** The user, as one who has proven to be that. */
export function authenticated(user: UserInfo): UserInfo {
  const groups = new Set([...user.groups, "system:authenticated"]);
  return { ...user, groups: [...groups] };
}

/** A digest under which a token may be kept: the token itself is in no table. */
export function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
