/** The server's own certificate authority and the certificates it issues (RFC 5280). EC P-256 throughout. */
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import {
  addressBytes,
  bitString,
  contentOf,
  type Element,
  explicit,
  flags,
  implicit,
  isTrue,
  membersOf,
  objectIdentifier,
  octetString,
  sequence,
  setOf,
  time,
  unsignedInteger,
  utf8String,
} from "./der.ts";

/** A certificate and its key, PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** What a certificate is for. */
export interface CertificateRequest {
  readonly commonName: string;
  /** Groups of a client. */
  readonly organizations?: readonly string[];
  /** Names and addresses of a server; makes it a server certificate. */
  readonly hosts?: readonly string[];
  readonly now: Date;
}

const day = 24 * 60 * 60 * 1000;
/** Certificates of a development cluster live long: nobody renews them. */
const lifetimeMs = 10 * 365 * day;

/** ecdsa-with-SHA256, which has no parameters (RFC 5758, section 3.2). */
const signatureAlgorithm = sequence(objectIdentifier("1.2.840.10045.4.3.2"));
const commonNameType = objectIdentifier("2.5.4.3");
const organizationType = objectIdentifier("2.5.4.10");

/** Extensions and purposes (RFC 5280, section 4.2.1). */
const ids = {
  subjectKeyIdentifier: objectIdentifier("2.5.29.14"),
  keyUsage: objectIdentifier("2.5.29.15"),
  subjectAlternativeName: objectIdentifier("2.5.29.17"),
  basicConstraints: objectIdentifier("2.5.29.19"),
  authorityKeyIdentifier: objectIdentifier("2.5.29.35"),
  extendedKeyUsage: objectIdentifier("2.5.29.37"),
  serverAuth: objectIdentifier("1.3.6.1.5.5.7.3.1"),
  clientAuth: objectIdentifier("1.3.6.1.5.5.7.3.2"),
} as const;

/** Places of flags in KeyUsage. */
const digitalSignature = 0;
const keyCertSign = 5;

/** A new authority. */
export async function createAuthority(commonName: string, now: Date): Promise<KeyPair> {
  const keys = generateKeys();
  const name = nameOf([], commonName);
  return signed({
    now,
    keys,
    signingKey: keys.pem,
    issuer: name,
    subject: name,
    extensions: [
      criticalExtension(ids.basicConstraints, sequence(isTrue)),
      criticalExtension(ids.keyUsage, flags(digitalSignature, keyCertSign)),
      extension(ids.subjectKeyIdentifier, octetString(keyIdentifier(keys.spki))),
    ],
  });
}

/** A certificate signed by `authority`. */
export async function issueCertificate(authority: KeyPair, request: CertificateRequest): Promise<KeyPair> {
  const keys = generateKeys();
  const { hosts = [], organizations = [], commonName, now } = request;
  const usage = request.hosts === undefined ? ids.clientAuth : ids.serverAuth;
  const issuer = new X509Certificate(authority.certificate);
  const issuerKey = keyIdentifier(issuer.publicKey.export({ type: "spki", format: "der" }));
  return signed({
    now,
    keys,
    signingKey: authority.key,
    issuer: subjectOf(issuer.raw),
    subject: nameOf(organizations, commonName),
    extensions: [
      criticalExtension(ids.basicConstraints, sequence()),
      criticalExtension(ids.keyUsage, flags(digitalSignature)),
      extension(ids.extendedKeyUsage, sequence(usage)),
      ...(hosts.length === 0
        ? []
        : [extension(ids.subjectAlternativeName, sequence(...hosts.map(generalName)))]),
      extension(ids.authorityKeyIdentifier, sequence(implicit(0, issuerKey))),
    ],
  });
}

interface Keys {
  /** The private key, PEM. */
  readonly pem: string;
  /** The public key as certificates carry it. */
  readonly spki: Buffer;
}

function generateKeys(): Keys {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    pem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    spki: publicKey.export({ type: "spki", format: "der" }),
  };
}

interface Unsigned {
  readonly now: Date;
  readonly keys: Keys;
  readonly signingKey: string;
  readonly issuer: Element;
  readonly subject: Element;
  readonly extensions: readonly Element[];
}

/** Version 3, which is written as 2. */
const version = explicit(0, unsignedInteger(Buffer.from([2])));

function signed({ now, keys, signingKey, issuer, subject, extensions }: Unsigned): KeyPair {
  const notBefore = new Date(now.getTime() - day);
  const notAfter = new Date(now.getTime() + lifetimeMs);
  const content = sequence(
    version,
    unsignedInteger(serialNumber()),
    signatureAlgorithm,
    issuer,
    sequence(time(notBefore), time(notAfter)),
    subject,
    keys.spki,
    explicit(3, sequence(...extensions)),
  );
  const signature = sign("sha256", content, createPrivateKey(signingKey));
  return {
    certificate: pemOf(sequence(content, signatureAlgorithm, bitString(signature))),
    key: keys.pem,
  };
}

function extension(id: Element, value: Element): Element {
  return sequence(id, octetString(value));
}

/** One that whoever does not know it must not pass over. */
function criticalExtension(id: Element, value: Element): Element {
  return sequence(id, isTrue, octetString(value));
}

/** A host as a server's certificate names it: dNSName, or iPAddress. */
function generalName(host: string): Element {
  const address = addressBytes(host);
  return address === undefined ? implicit(2, Buffer.from(host, "latin1")) : implicit(7, address);
}

/** Organizations first, each a part of its own, as clients' groups are read from there. */
function nameOf(organizations: readonly string[], commonName: string): Element {
  const part = (type: Element, text: string) => setOf(sequence(type, utf8String(text)));
  return sequence(
    ...organizations.map((organization) => part(organizationType, organization)),
    part(commonNameType, commonName),
  );
}

/** The name of a certificate's subject, as it is written there: behind serial number, algorithm, issuer and validity. */
function subjectOf(certificate: Element): Element {
  const [content = certificate] = membersOf(certificate);
  const fields = membersOf(content);
  const hasVersion = fields[0]?.[0] === version[0];
  const subject = fields[hasVersion ? 5 : 4];
  if (subject === undefined) throw new Error("the authority's certificate names no subject");
  return subject;
}

/** The digest of the key's bits (RFC 5280, section 4.2.1.2, the first method). */
function keyIdentifier(spki: Buffer): Buffer {
  const bits = membersOf(spki)[1];
  if (bits === undefined) throw new Error("the public key of a certificate has no bits");
  // The first byte counts the bits that are not used: none.
  return createHash("sha1").update(contentOf(bits).subarray(1)).digest();
}

function pemOf(der: Buffer): string {
  const text = der.toString("base64").replace(/(.{64})(?=.)/g, "$1\n");
  return `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
}

/** Sixteen random bytes, the first of them such that the number is positive and not short. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}
