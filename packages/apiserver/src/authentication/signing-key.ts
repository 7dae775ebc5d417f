/** The key that signs the tokens of service accounts (ES256), and what others need to check them. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";

/** A key that signs and verifies the tokens of service accounts. */
export interface SigningKey {
  /** The key's public half as JWKS shows it. */
  readonly jwk: Readonly<Record<string, string>>;
  /** A signed token with these claims. */
  sign(claims: object): string;
  /** The claims of a token that this key has signed; undefined for any other text. */
  verify(token: string): Readonly<Record<string, unknown>> | undefined;
}

/** A new private key, PEM. */
export function generateSigningKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}

/** Maximum length of a token, in characters; longer ones are refused without parsing. */
const tokenLengthMax = 16 * 1024;

/** The key of a PEM text. @throws Error when it is no EC P-256 private key */
export function signingKey(pem: string): SigningKey {
  const privateKey = createPrivateKey(pem);
  if (privateKey.asymmetricKeyDetails?.namedCurve !== "prime256v1") {
    throw new Error("the signing key of service accounts must be an EC key on P-256, PEM");
  }
  const publicKey = createPublicKey(privateKey);
  const kid = keyId(publicKey);
  const header = base64url(JSON.stringify({ alg: "ES256", kid }));
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  return {
    jwk: { use: "sig", kty: "EC", kid, crv: "P-256", alg: "ES256", x, y },
    sign(claims) {
      const signed = `${header}.${base64url(JSON.stringify(claims))}`;
      const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" });
      return `${signed}.${signature.toString("base64url")}`;
    },
    verify(token) {
      const parts = token.length > tokenLengthMax ? [] : token.split(".");
      // Only our own header is accepted: other algorithms, `none` among them, are refused.
      if (parts.length !== 3 || parts[0] !== header) return undefined;
      const signature = Buffer.from(parts[2] as string, "base64url");
      // Node skips what is not base64url, and bits that say nothing: one token would have many texts (RFC 7515, 2 and 7.1).
      if (signature.toString("base64url") !== parts[2]) return undefined;
      const signed = Buffer.from(`${parts[0]}.${parts[1]}`);
      const key = { key: publicKey, dsaEncoding: "ieee-p1363" as const };
      if (!verify("sha256", signed, key, signature)) return undefined;
      return JSON.parse(Buffer.from(parts[1] as string, "base64url").toString("utf8"));
    },
  };
}

/** The name of a key: a digest of its public half (serviceaccount keyIDFromPublicKey). */
function keyId(publicKey: KeyObject): string {
  const der = publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(der).digest("base64url");
}

function base64url(text: string): string {
  return Buffer.from(text).toString("base64url");
}
