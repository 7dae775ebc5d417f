/** The server's own certificate authority and the certificates it issues. EC P-256 throughout. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from "node:crypto";
import { createRequire } from "node:module";

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

/** ecdsa-with-SHA256 (RFC 5758, section 3.2). */
const signatureAlgorithm = "1.2.840.10045.4.3.2";
const commonNameType = "2.5.4.3";
const organizationType = "2.5.4.10";

type X509 = typeof import("@peculiar/asn1-x509");
type Asn = typeof import("@peculiar/asn1-schema");

/** The forms of X.509 and how they are written; loaded when first needed: most servers never make a certificate. */
interface Forms {
  readonly x509: X509;
  readonly asn: Asn;
}

const require = createRequire(import.meta.url);

/** Not by `import`, which reads each of their many CommonJS files twice to learn what it exports. */
const loadForms = (): Forms => ({
  x509: require("@peculiar/asn1-x509") as X509,
  asn: require("@peculiar/asn1-schema") as Asn,
});

/** A new authority. */
export async function createAuthority(commonName: string, now: Date): Promise<KeyPair> {
  const forms = loadForms();
  const { x509 } = forms;
  const keys = generateKeys();
  const name = nameOf(forms, [], commonName);
  const subjectKeyIdentifier = new x509.SubjectKeyIdentifier(keyIdentifier(forms, keys.spki));
  const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature;
  return signed(forms, {
    now,
    keys,
    signingKey: keys.pem,
    issuer: name,
    subject: name,
    extensions: [
      extension(forms, x509.id_ce_basicConstraints, new x509.BasicConstraints({ cA: true }), true),
      extension(forms, x509.id_ce_keyUsage, new x509.KeyUsage(usages), true),
      extension(forms, x509.id_ce_subjectKeyIdentifier, subjectKeyIdentifier),
    ],
  });
}

/** A certificate signed by `authority`. */
export async function issueCertificate(authority: KeyPair, request: CertificateRequest): Promise<KeyPair> {
  const forms = loadForms();
  const { x509, asn } = forms;
  const keys = generateKeys();
  const { hosts = [], organizations = [], commonName, now } = request;
  const usage = request.hosts === undefined ? x509.id_kp_clientAuth : x509.id_kp_serverAuth;
  const names = hosts.map((host) => {
    const isAddress = /^[\d.]+$|:/.test(host);
    return new x509.GeneralName(isAddress ? { iPAddress: host } : { dNSName: host });
  });
  const issuerSpki = createPublicKey(authority.certificate).export({ type: "spki", format: "der" });
  const issuerKey = new x509.AuthorityKeyIdentifier({
    keyIdentifier: new x509.KeyIdentifier(keyIdentifier(forms, issuerSpki)),
  });
  const { tbsCertificate } = asn.AsnConvert.parse(derOf(authority.certificate), x509.Certificate);
  return signed(forms, {
    now,
    keys,
    signingKey: authority.key,
    issuer: tbsCertificate.subject,
    subject: nameOf(forms, organizations, commonName),
    extensions: [
      extension(forms, x509.id_ce_basicConstraints, new x509.BasicConstraints({ cA: false }), true),
      extension(forms, x509.id_ce_keyUsage, new x509.KeyUsage(x509.KeyUsageFlags.digitalSignature), true),
      extension(forms, x509.id_ce_extKeyUsage, new x509.ExtendedKeyUsage([usage])),
      ...(names.length === 0
        ? []
        : [extension(forms, x509.id_ce_subjectAltName, new x509.SubjectAlternativeName(names))]),
      extension(forms, x509.id_ce_authorityKeyIdentifier, issuerKey),
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
  readonly issuer: InstanceType<X509["Name"]>;
  readonly subject: InstanceType<X509["Name"]>;
  readonly extensions: InstanceType<X509["Extension"]>[];
}

function signed(
  { x509, asn }: Forms,
  { now, keys, signingKey, issuer, subject, extensions }: Unsigned,
): KeyPair {
  const algorithm = new x509.AlgorithmIdentifier({ algorithm: signatureAlgorithm });
  const tbsCertificate = new x509.TBSCertificate({
    version: x509.Version.v3,
    serialNumber: exactly(serialNumber()),
    signature: algorithm,
    issuer,
    validity: new x509.Validity({
      notBefore: new Date(now.getTime() - day),
      notAfter: new Date(now.getTime() + lifetimeMs),
    }),
    subject,
    subjectPublicKeyInfo: asn.AsnConvert.parse(keys.spki, x509.SubjectPublicKeyInfo),
    extensions: new x509.Extensions(extensions),
  });
  const content = Buffer.from(asn.AsnConvert.serialize(tbsCertificate));
  const certificate = new x509.Certificate({
    tbsCertificate,
    signatureAlgorithm: algorithm,
    signatureValue: exactly(sign("sha256", content, createPrivateKey(signingKey))),
  });
  return { certificate: pemOf(Buffer.from(asn.AsnConvert.serialize(certificate))), key: keys.pem };
}

function extension(
  { x509, asn }: Forms,
  extnID: string,
  value: unknown,
  critical = false,
): InstanceType<X509["Extension"]> {
  const extnValue = new asn.OctetString(asn.AsnConvert.serialize(value));
  return new x509.Extension({ extnID, critical, extnValue });
}

/** Organizations first, each a part of its own, as clients' groups are read from there. */
function nameOf({ x509 }: Forms, organizations: readonly string[], commonName: string) {
  const part = (type: string, utf8String: string) => {
    const value = new x509.AttributeValue({ utf8String });
    return new x509.RelativeDistinguishedName([new x509.AttributeTypeAndValue({ type, value })]);
  };
  return new x509.Name([
    ...organizations.map((organization) => part(organizationType, organization)),
    part(commonNameType, commonName),
  ]);
}

/** The digest of the key's bits (RFC 5280, section 4.2.1.2, the first method). */
function keyIdentifier({ x509, asn }: Forms, spki: Buffer): ArrayBuffer {
  const { subjectPublicKey } = asn.AsnConvert.parse(spki, x509.SubjectPublicKeyInfo);
  return exactly(createHash("sha1").update(Buffer.from(subjectPublicKey)).digest());
}

function derOf(pem: string): Buffer {
  return Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ""), "base64");
}

function pemOf(der: Buffer): string {
  const text = der.toString("base64").replace(/(.{64})(?=.)/g, "$1\n");
  return `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
}

/** The bytes in memory of their own: a small buffer is part of a larger one. */
function exactly(bytes: Buffer): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}

/** Sixteen random bytes, the first of them such that the number is positive and not short. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}
