/**
 * The tokens of service accounts: signed, meant for certain audiences, ending at a time, and bound to the account
 * and perhaps a pod, a Secret or a node. What they are bound to must still be there at each use
 * (kubernetes pkg/serviceaccount claims.go, legacy.go).
 */
import type { KubeObject, Stored } from "@longshore/kube";
import type { Clock, Random } from "@longshore/runtime";
import type { UserInfo } from "../api/api-request.ts";
import type { Store } from "../storage/store.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { generateSigningKey, type SigningKey, signingKey } from "./signing-key.ts";
import {
  digest,
  type TokenAuthenticator,
  type TokenIdentity,
  type TokenProblem,
} from "./token-authenticator.ts";

/** An object that a token is bound to. */
export interface BoundObject {
  readonly kind: "Pod" | "Secret" | "Node";
  readonly object: Stored;
}

/** The token to issue. `lifetimeSeconds` is limited by the caller; a bound token is valid only while its object exists. */
export interface TokenParameters {
  readonly account: Stored;
  readonly audiences: readonly string[];
  readonly lifetimeSeconds: number;
  readonly bound?: BoundObject;
}

/** A token that was issued. The text is a secret. */
export interface IssuedToken {
  readonly token: string;
  readonly expires: Date;
}

/** What the tokens are made with. */
export interface ServiceAccountTokenEnv {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Store;
  readonly version: EmulatedVersion;
  /** Private key, PEM; default: a key that is made with the first token and exists only in this process. */
  readonly key?: string;
  readonly issuer: string;
}

interface ObjectClaim {
  readonly name: string;
  readonly uid: string;
}

interface Claims {
  readonly iss?: string;
  readonly sub?: string;
  readonly aud?: readonly string[] | string;
  readonly exp?: number;
  readonly nbf?: number;
  readonly jti?: string;
  readonly "kubernetes.io"?: {
    readonly namespace?: string;
    readonly serviceaccount?: ObjectClaim;
    readonly pod?: ObjectClaim;
    readonly secret?: ObjectClaim;
    readonly node?: ObjectClaim;
  };
  readonly [legacy: `kubernetes.io/serviceaccount/${string}`]: string | undefined;
}

const legacyIssuer = "kubernetes/serviceaccount";
/** How long a token stays valid after its object has been marked for deletion. */
const deletionLeewayMs = 60_000;
/** Most tokens whose signature is remembered as good. */
const rememberedMax = 4096;

/** Issues and verifies the tokens of service accounts. */
export class ServiceAccountTokens implements TokenAuthenticator {
  readonly #env: ServiceAccountTokenEnv;
  #key: SigningKey | undefined;
  /** Claims of tokens whose signatures were good, by the digests of the tokens, oldest first. */
  readonly #verified = new Map<string, Claims>();

  constructor(env: ServiceAccountTokenEnv) {
    this.#env = env;
  }

  /** The issuer URL of the tokens; also the audience of the API itself. */
  get issuer(): string {
    return this.#env.issuer;
  }

  /** The JSON Web Key Set with which others check the tokens. */
  get keySet(): object {
    return { keys: [this.#signingKey().jwk] };
  }

  /** Makes a token. */
  issue({ account, audiences, lifetimeSeconds, bound }: TokenParameters): IssuedToken {
    const { clock, version, random, issuer } = this.#env;
    const now = Math.floor(clock.now().getTime() / 1000);
    const { name, namespace = "", uid } = account.metadata;
    const exp = now + lifetimeSeconds;
    const claims = {
      aud: audiences,
      exp,
      iat: now,
      iss: issuer,
      ...(version.has("tokenIds") ? { jti: random.uuid("token id") } : {}),
      "kubernetes.io": {
        namespace,
        ...(version.has("tokenIds") ? this.#nodeOf(bound) : {}),
        ...(bound === undefined ? {} : { [bound.kind.toLowerCase()]: claimOf(bound.object) }),
        serviceaccount: { name, uid },
      },
      nbf: now,
      sub: userName(namespace, name),
    };
    return { token: this.#signingKey().sign(claims), expires: new Date(exp * 1000) };
  }

  /** Makes a token that has no end, as it is kept in a Secret of type `kubernetes.io/service-account-token`. */
  issueLegacy(account: Stored, secretName: string): string {
    const { name, namespace = "", uid } = account.metadata;
    return this.#signingKey().sign({
      iss: legacyIssuer,
      "kubernetes.io/serviceaccount/namespace": namespace,
      "kubernetes.io/serviceaccount/secret.name": secretName,
      "kubernetes.io/serviceaccount/service-account.name": name,
      "kubernetes.io/serviceaccount/service-account.uid": uid,
      sub: userName(namespace, name),
    });
  }

  authenticateToken(token: string, audiences: readonly string[]): TokenIdentity | TokenProblem | undefined {
    const claims = this.#claimsOf(token);
    if (claims === undefined) return undefined;
    if (claims.iss === legacyIssuer) return this.#legacy(token, claims, audiences);
    if (claims.iss !== this.#env.issuer) return undefined;
    const meantFor = typeof claims.aud === "string" ? [claims.aud] : (claims.aud ?? []);
    const wanted = new Set(meantFor);
    const good = audiences.filter((audience) => wanted.has(audience));
    if (good.length === 0) {
      const list = (items: readonly string[]) => `[${items.map((item) => JSON.stringify(item)).join(" ")}]`;
      return {
        problem: `token audiences ${list(meantFor)} is invalid for the target audiences ${list(audiences)}`,
      };
    }
    const now = this.#env.clock.now().getTime() / 1000;
    if (claims.exp === undefined || now >= claims.exp)
      return { problem: "service account token has expired" };
    if (now < (claims.nbf ?? 0)) return { problem: "service account token is not valid yet" };
    const { namespace = "", serviceaccount, pod, secret, node } = claims["kubernetes.io"] ?? {};
    const isThere =
      this.#isThere("serviceaccounts", namespace, serviceaccount) &&
      (pod === undefined || this.#isThere("pods", namespace, pod)) &&
      (secret === undefined || this.#isThere("secrets", namespace, secret)) &&
      // In a pod's token the node is only information; a token bound to a node needs the node to exist.
      (node === undefined || pod !== undefined || this.#isThere("nodes", "", node));
    if (!isThere || serviceaccount === undefined) return { problem: "Token has been invalidated" };
    const extra: Record<string, readonly string[]> = {};
    const add = (key: string, value: string | undefined) => {
      if (value !== undefined) extra[`authentication.kubernetes.io/${key}`] = [value];
    };
    add("credential-id", claims.jti === undefined ? undefined : `JTI=${claims.jti}`);
    add("node-name", node?.name);
    add("node-uid", node?.uid);
    add("pod-name", pod?.name);
    add("pod-uid", pod?.uid);
    return { user: serviceAccountUser(namespace, serviceaccount, extra), audiences: good };
  }

  #legacy(
    token: string,
    claims: Claims,
    audiences: readonly string[],
  ): TokenIdentity | TokenProblem | undefined {
    if (!audiences.includes(this.#env.issuer)) return undefined;
    const namespace = claims["kubernetes.io/serviceaccount/namespace"] ?? "";
    const name = claims["kubernetes.io/serviceaccount/service-account.name"] ?? "";
    const uid = claims["kubernetes.io/serviceaccount/service-account.uid"] ?? "";
    const secretName = claims["kubernetes.io/serviceaccount/secret.name"] ?? "";
    const secret = this.#env.store.table("secrets").get(namespace, secretName) as
      | (Stored & { readonly data?: Readonly<Record<string, string>> })
      | undefined;
    const kept = Buffer.from(secret?.data?.token ?? "", "base64");
    const isKept = digest(kept.toString("utf8")).equals(digest(token)) && this.#stays(secret);
    if (!isKept || !this.#isThere("serviceaccounts", namespace, { name, uid })) {
      return { problem: "Token has been invalidated" };
    }
    return { user: serviceAccountUser(namespace, { name, uid }, {}), audiences: [this.#env.issuer] };
  }

  /** The claims of a token with a good signature, which is checked once. */
  #claimsOf(token: string): Claims | undefined {
    // Every signed token begins so: it is base64url of `{"`.
    if (!token.startsWith("eyJ")) return undefined;
    const key = digest(token).toString("base64");
    const known = this.#verified.get(key);
    // The signature alone is remembered: times and bound objects are looked at with each use.
    if (known !== undefined) return known;
    const claims = this.#signingKey().verify(token) as Claims | undefined;
    if (claims === undefined) return undefined;
    if (this.#verified.size >= rememberedMax) {
      for (const oldest of this.#verified.keys()) {
        this.#verified.delete(oldest);
        break;
      }
    }
    this.#verified.set(key, claims);
    return claims;
  }

  #isThere(table: string, namespace: string, claim: ObjectClaim | undefined): boolean {
    if (claim === undefined) return false;
    const object = this.#env.store.table(table).get(namespace, claim.name);
    return object?.metadata.uid === claim.uid && this.#stays(object);
  }

  #stays(object: Stored | undefined): boolean {
    const deleted = object?.metadata.deletionTimestamp;
    if (object === undefined || deleted === undefined) return object !== undefined;
    return Date.parse(deleted) >= this.#env.clock.now().getTime() - deletionLeewayMs;
  }

  #nodeOf(bound: BoundObject | undefined): object {
    if (bound?.kind !== "Pod") return {};
    const name = (bound.object as Stored & { spec?: { nodeName?: string } }).spec?.nodeName;
    const node = name === undefined ? undefined : this.#env.store.table("nodes").get("", name);
    return node === undefined ? {} : { node: claimOf(node) };
  }

  #signingKey(): SigningKey {
    this.#key ??= signingKey(this.#env.key ?? generateSigningKey());
    return this.#key;
  }
}

function claimOf({ metadata: { name, uid } }: Stored<KubeObject>): ObjectClaim {
  return { name, uid };
}

/** The name of a service account as a user. */
export function userName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** A service account as a user. */
export function serviceAccountUser(
  namespace: string,
  { name, uid }: ObjectClaim,
  extra: Readonly<Record<string, readonly string[]>> = {},
): UserInfo {
  return {
    name: userName(namespace, name),
    ...(uid === "" ? {} : { uid }),
    groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`],
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}
