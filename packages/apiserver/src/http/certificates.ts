/** The server's own certificate authority and the certificates it issues. EC P-256 throughout. */
import { webcrypto } from "node:crypto";

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

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const day = 24 * 60 * 60 * 1000;
/** Certificates of a development cluster live long: nobody renews them. */
const lifetimeMs = 10 * 365 * day;

/** Loaded when first needed: most servers run in process and never see a certificate. */
async function loadX509() {
  await import("reflect-metadata"); // Needed by x509, before it.
  const x509 = await import("@peculiar/x509");
  x509.cryptoProvider.set(webcrypto as never);
  return x509;
}

/** A new authority. */
export async function createAuthority(commonName: string, now: Date): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=${commonName}`,
    notBefore: new Date(now.getTime() - day),
    notAfter: new Date(now.getTime() + lifetimeMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey as never),
    ],
  } as never);
  return { certificate: certificate.toString("pem"), key: await pemOf(keys.privateKey) };
}

/** A certificate signed by `authority`. */
export async function issueCertificate(authority: KeyPair, request: CertificateRequest): Promise<KeyPair> {
  const x509 = await loadX509();
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = await importKey(authority.key);
  const keys = await generateKeys();
  const { hosts, organizations = [], now } = request;
  const usage = hosts === undefined ? x509.ExtendedKeyUsage.clientAuth : x509.ExtendedKeyUsage.serverAuth;
  const names = (hosts ?? []).map((host) =>
    /^[\d.]+$|:/.test(host) ? { type: "ip", value: host } : { type: "dns", value: host },
  );
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: [...organizations.map((o) => ({ O: [o] })), { CN: [request.commonName] }],
    issuer: issuer.subject,
    notBefore: new Date(now.getTime() - day),
    notAfter: new Date(now.getTime() + lifetimeMs),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([usage]),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names as never)]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  } as never);
  return { certificate: certificate.toString("pem"), key: await pemOf(keys.privateKey) };
}

async function generateKeys() {
  return (await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"])) as webcrypto.CryptoKeyPair;
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key)).toString("base64");
  return `-----BEGIN PRIVATE KEY-----\n${der.replace(/(.{64})(?=.)/g, "$1\n")}\n-----END PRIVATE KEY-----\n`;
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ""), "base64");
  return webcrypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
}

/** Sixteen random bytes, the first of them such that the number is positive and not short. */
function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return Buffer.from(bytes).toString("hex");
}
