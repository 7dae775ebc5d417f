/** The server's own certificate authority and the certificates it issues (RFC 5280). EC P-256 throughout. */
import { createPrivateKey, KeyObject, randomBytes, webcrypto } from "node:crypto";
import type { Extension, JsonGeneralName, JsonNameParams } from "@peculiar/x509";

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
/** Certificates of a development cluster live long: they are not renewed. */
const lifetimeMs = 10 * 365 * day;

const ecdsa = { name: "ECDSA", namedCurve: "P-256" } as const;

/** Creates an authority: a self-signed certificate and its key. */
export async function createAuthority(commonName: string, now: Date): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await generateKeys();
  const subject = new x509.Name(nameOf([], commonName));
  const usages = x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign;
  return certify({
    x509,
    now,
    keys,
    signingKey: keys.privateKey,
    subject,
    issuer: subject,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(usages, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
}

/** Issues a certificate that `authority` signs. @throws Error when the authority's certificate or key is no EC one */
export async function issueCertificate(authority: KeyPair, request: CertificateRequest): Promise<KeyPair> {
  const x509 = await loadX509();
  const { hosts = [], organizations = [], commonName, now } = request;
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  const issuer = new x509.X509Certificate(authority.certificate);
  return certify({
    x509,
    now,
    keys: await generateKeys(),
    signingKey: await signingKeyOf(authority.key),
    issuer: issuer.subjectName,
    subject: new x509.Name(nameOf(organizations, commonName)),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([request.hosts === undefined ? clientAuth : serverAuth]),
      ...(hosts.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(hosts.map(hostName))]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
}

type X509 = typeof import("@peculiar/x509");

/** Loaded when a certificate is made: a server whose data directory has its certificates starts without it. */
async function loadX509(): Promise<X509> {
  // A library below @peculiar/x509 looks for the functions of reflect-metadata while it loads: this one comes first.
  await import("reflect-metadata");
  return import("@peculiar/x509");
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ecdsa, true, ["sign", "verify"]);
}

/** The key of an authority, which another program may have made. */
async function signingKeyOf(pem: string): Promise<webcrypto.CryptoKey> {
  const pkcs8 = createPrivateKey(pem).export({ type: "pkcs8", format: "der" });
  return webcrypto.subtle.importKey("pkcs8", pkcs8, ecdsa, false, ["sign"]);
}

/** Organizations first, each as a separate attribute: the server reads a client's groups from them. */
function nameOf(organizations: readonly string[], commonName: string): JsonNameParams {
  return [
    ...organizations.map((organization) => ({ O: [{ utf8String: organization }] })),
    { CN: [{ utf8String: commonName }] },
  ];
}

/** A host as a server's certificate names it: dNSName, or iPAddress (RFC 5280, section 4.2.1.6). */
function hostName(host: string): JsonGeneralName {
  // The URL writes an address whose last part is an IPv4 address in groups of hexadecimal digits, as the library reads it.
  if (host.includes(":")) return { type: "ip", value: new URL(`http://[${host}]`).hostname.slice(1, -1) };
  return { type: /^[\d.]+$/.test(host) ? "ip" : "dns", value: host };
}

/**
 * A time as the library writes it. It gives every year before 2050 two digits, which mean 1950 to 2049 (RFC 5280,
 * section 4.1.2.5): a clock that shows an earlier year needs the form with four, which the library takes by its name.
 */
function timeOf(date: Date): Date {
  if (date.getUTCFullYear() >= 1950) return date;
  const generalTime = new Date(Math.floor(date.getTime() / 1000) * 1000);
  return { generalTime } as unknown as Date;
}

interface Unsigned {
  readonly x509: X509;
  readonly now: Date;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly signingKey: webcrypto.CryptoKey;
  readonly issuer: InstanceType<X509["Name"]>;
  readonly subject: InstanceType<X509["Name"]>;
  readonly extensions: Extension[];
}

async function certify({ x509, now, keys, ...content }: Unsigned): Promise<KeyPair> {
  const certificate = await x509.X509CertificateGenerator.create({
    ...content,
    publicKey: keys.publicKey,
    serialNumber: serialNumber(),
    notBefore: timeOf(new Date(now.getTime() - day)),
    notAfter: timeOf(new Date(now.getTime() + lifetimeMs)),
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
  });
  const key = KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" });
  return { certificate: `${certificate.toString("pem")}\n`, key: key.toString() };
}

/** Sixteen random bytes in hexadecimal, the first of them such that the number is positive and not short. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}
