/**
 * The data directory of a durable server: its authority, certificates and tokens (each file 0600), and the store.
 * Created once, read on every start.
 */
import { createPrivateKey, randomBytes, X509Certificate } from "node:crypto";
import { lstat, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseTokenFile, TokenFileError } from "../authentication/parse-token-file.ts";
import { generateSigningKey } from "../authentication/signing-key.ts";
import type { StaticToken } from "../authentication/token-authenticator.ts";
import { syncDirectory } from "../storage/disk/write-whole-file.ts";
import { createAuthority, issueCertificate, type KeyPair } from "./issue-certificate.ts";

/** The content of a data directory except for the store. */
export interface ClusterCredentials {
  readonly authority: KeyPair;
  readonly server: KeyPair;
  readonly adminToken: string;
  /** The key that signs tokens of service accounts, PEM. */
  readonly serviceAccountKey: string;
}

/** Names and addresses under which the server may be reached. */
const serverHosts = [
  "127.0.0.1",
  "::1",
  "localhost",
  "kubernetes",
  "kubernetes.default",
  "kubernetes.default.svc",
];

/** Credentials for a server whose cluster ends with it; nothing is written. */
export async function makeCredentials(now: Date): Promise<ClusterCredentials> {
  const authority = await createAuthority("longshore", now);
  const server = await issueServer(authority, now);
  return { authority, server, adminToken: newToken(), serviceAccountKey: generateSigningKey() };
}

/** The credentials of `dataDir`, made when they are not there yet. */
export async function ensureCredentials(dataDir: string, now: Date): Promise<ClusterCredentials> {
  const directory = join(dataDir, "pki");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const authority = await authorityOf(directory, now);
  const server = await serverOf(directory, authority, now);
  const tokenFile = join(directory, "admin-token");
  let adminToken = await readText(tokenFile);
  if (adminToken === undefined) {
    adminToken = newToken();
    await writePrivateFile(tokenFile, adminToken);
  }
  const keyFile = join(directory, "sa.key");
  let serviceAccountKey = await readText(keyFile);
  if (serviceAccountKey === undefined) {
    serviceAccountKey = generateSigningKey();
    await writePrivateFile(keyFile, serviceAccountKey);
  }
  return { authority, server, adminToken, serviceAccountKey };
}

function issueServer(authority: KeyPair, now: Date): Promise<KeyPair> {
  return issueCertificate(authority, { commonName: "kube-apiserver", hosts: serverHosts, now });
}

function newToken(): string {
  return randomBytes(32).toString("base64url");
}

/**
 * The authority of the directory. Another one would be trusted by no client: it is made only where it has issued nothing yet.
 * @throws CredentialsError when a part of it is missing or damaged
 */
async function authorityOf(directory: string, now: Date): Promise<KeyPair> {
  const { certificate, key, files } = await readPair(directory, "ca");
  if (certificate !== undefined && key !== undefined) {
    const pair = { certificate, key };
    if (belongTogether(pair)) return pair;
    throw new CredentialsError(`${files.certificate} and ${files.key} do not belong together`, directory);
  }
  const issued = await readPair(directory, "apiserver");
  const isNew = certificate === undefined && issued.certificate === undefined && issued.key === undefined;
  // A first start that was killed may have left the key, which is written before the certificate.
  if (isNew) return writePair(files, await createAuthority("longshore", now));
  const missing = key === undefined ? files.key : files.certificate;
  throw new CredentialsError(`${missing} is missing, which other files here depend on`, directory);
}

/** The server's own certificate; another one is as good, as long as the same authority issues it. */
async function serverOf(directory: string, authority: KeyPair, now: Date): Promise<KeyPair> {
  const { certificate, key, files } = await readPair(directory, "apiserver");
  if (certificate !== undefined && key !== undefined) {
    const pair = { certificate, key };
    if (belongTogether(pair) && isIssuedBy(certificate, authority)) return pair;
  }
  return writePair(files, await issueServer(authority, now));
}

/** Credentials of a data directory that cannot be used, and cannot be made again without harm. */
export class CredentialsError extends Error {
  override readonly name = "CredentialsError";
  constructor(problem: string, directory: string) {
    super(
      `${problem}: restore it from a backup, or remove ${directory} to have all certificates and tokens made again, after which every kubeconfig and token of the cluster is void`,
    );
  }
}

interface PairFiles {
  readonly certificate: string;
  readonly key: string;
}

async function readPair(directory: string, name: string): Promise<Partial<KeyPair> & { files: PairFiles }> {
  const files = { certificate: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) };
  const certificate = await readText(files.certificate);
  const key = await readText(files.key);
  return {
    ...(certificate === undefined ? {} : { certificate }),
    ...(key === undefined ? {} : { key }),
    files,
  };
}

async function writePair(files: PairFiles, made: KeyPair): Promise<KeyPair> {
  await writePrivateFile(files.key, made.key);
  await writePrivateFile(files.certificate, made.certificate);
  return made;
}

function belongTogether({ certificate, key }: KeyPair): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false; // One of them is no PEM.
  }
}

function isIssuedBy(certificate: string, authority: KeyPair): boolean {
  return new X509Certificate(certificate).verify(new X509Certificate(authority.certificate).publicKey);
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** The holders of tokens that the file lists. @throws TokenFileError when it cannot be read */
export async function readTokenFile(path: string): Promise<readonly StaticToken[]> {
  const text = await readText(path);
  if (text === undefined) throw new TokenFileError(`the token file ${path} is not there`);
  return parseTokenFile(text);
}

/**
 * Writes a file that only its owner may read: a temporary file in the same directory, synced, then renamed. Never
 * follows a link: the temporary name cannot be guessed, the call fails if that file exists, and the rename replaces a
 * link by the file.
 */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.tmp-${randomBytes(8).toString("hex")}`;
  const file = await open(temporary, "wx", 0o600);
  try {
    try {
      await file.writeFile(text);
      await file.chmod(0o600);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** A file that is not ours stands where a kubeconfig is to be written. */
export class KubeconfigInTheWayError extends Error {
  override readonly name = "KubeconfigInTheWayError";
}

/** Replacing someone's own kubeconfig would lose them their clusters. @throws KubeconfigInTheWayError */
export async function requireOwnKubeconfig(path: string): Promise<void> {
  const stat = await lstat(path).catch(() => undefined);
  if (stat?.isSymbolicLink() === true) {
    throw new KubeconfigInTheWayError(`${path} is a link, and is not followed: name the file itself`);
  }
  const text = await readText(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOTDIR") return undefined; // Nothing is there; that nothing can be written, writing says.
    throw new KubeconfigInTheWayError(`${path} is there and cannot be read: name another file`, {
      cause: error,
    });
  });
  if (text === undefined || text === "" || isOwnKubeconfig(text)) return;
  throw new KubeconfigInTheWayError(
    `${path} is there, and is not a kubeconfig that this command has written: name another file, or remove it`,
  );
}

function isOwnKubeconfig(text: string): boolean {
  try {
    const { clusters } = JSON.parse(text) as { readonly clusters?: readonly { readonly name?: unknown }[] };
    return clusters?.length === 1 && clusters[0]?.name === ownName;
  } catch {
    return false;
  }
}

/** What cluster and context are called in the kubeconfigs that are written here. */
const ownName = "longshore";

/** A kubeconfig for one user of one cluster. JSON is YAML too. */
export function kubeconfig(options: {
  readonly url: string;
  readonly caCert: string;
  readonly user: string;
  readonly token?: string;
  readonly client?: KeyPair;
}): string {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const user = {
    ...(options.token === undefined ? {} : { token: options.token }),
    ...(options.client === undefined
      ? {}
      : {
          "client-certificate-data": base64(options.client.certificate),
          "client-key-data": base64(options.client.key),
        }),
  };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: ownName,
        cluster: { server: options.url, "certificate-authority-data": base64(options.caCert) },
      },
    ],
    users: [{ name: options.user, user }],
    contexts: [{ name: ownName, context: { cluster: ownName, user: options.user } }],
    "current-context": ownName,
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}
