/** The server's own certificate authority and the certificates it issues (RFC 5280). EC P-256 throughout. */
import { createPrivateKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from "node:crypto";
import {
  bytesOf,
  type CertificateWriter,
  certificateWriter,
  type Element,
  ids,
  keyUsages,
} from "./certificate-writer.ts";

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

/** A new authority. */
export async function createAuthority(commonName: string, now: Date): Promise<KeyPair> {
  const write = await certificateWriter();
  const keys = generateKeys();
  const name = write.name([], commonName);
  return signed(write, {
    now,
    keys,
    signingKey: keys.pem,
    issuer: name,
    subject: name,
    extensions: [
      write.criticalExtension(ids.basicConstraints, write.sequence(write.true())),
      write.criticalExtension(ids.keyUsage, write.keyUsage(keyUsages.digitalSignatureAndCertSign)),
      write.extension(ids.subjectKeyIdentifier, write.octets(write.keyIdentifier(keys.spki))),
    ],
  });
}

/** A certificate signed by `authority`. */
export async function issueCertificate(authority: KeyPair, request: CertificateRequest): Promise<KeyPair> {
  const write = await certificateWriter();
  const keys = generateKeys();
  const { hosts = [], organizations = [], commonName, now } = request;
  const usage = request.hosts === undefined ? ids.clientAuth : ids.serverAuth;
  const issuer = new X509Certificate(authority.certificate);
  const issuerKey = write.keyIdentifier(issuer.publicKey.export({ type: "spki", format: "der" }));
  const names = hosts.map((host) => write.generalName(host));
  return signed(write, {
    now,
    keys,
    signingKey: authority.key,
    issuer: write.subjectOf(issuer.raw),
    subject: write.name(organizations, commonName),
    extensions: [
      write.criticalExtension(ids.basicConstraints, write.sequence()),
      write.criticalExtension(ids.keyUsage, write.keyUsage(keyUsages.digitalSignature)),
      write.extension(ids.extendedKeyUsage, write.sequence(write.id(usage))),
      ...(names.length === 0 ? [] : [write.extension(ids.subjectAlternativeName, write.sequence(...names))]),
      write.extension(ids.authorityKeyIdentifier, write.sequence(write.implicit(0, issuerKey))),
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

function signed(
  write: CertificateWriter,
  { now, keys, signingKey, issuer, subject, extensions }: Unsigned,
): KeyPair {
  const notBefore = new Date(now.getTime() - day);
  const notAfter = new Date(now.getTime() + lifetimeMs);
  // It has no parameters.
  const algorithm = write.sequence(write.id(ids.ecdsaWithSha256));
  const content = write.sequence(
    write.explicit(0, write.integer(Uint8Array.of(2))), // Version 3.
    write.integer(serialNumber()),
    algorithm,
    issuer,
    write.sequence(write.time(notBefore), write.time(notAfter)),
    subject,
    write.read(keys.spki),
    write.explicit(3, write.sequence(...extensions)),
  );
  const signature = sign("sha256", bytesOf(content), createPrivateKey(signingKey));
  const certificate = write.sequence(content, algorithm, write.bits(signature));
  return { certificate: pemOf(bytesOf(certificate)), key: keys.pem };
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
