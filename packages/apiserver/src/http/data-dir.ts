/**
 * The data directory of a durable server: its authority, certificates and tokens (each file 0600)
 * beside the store. Made once, read again on every start.
 */
import { randomBytes } from "node:crypto";
import { chmod, mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { generateSigningKey } from "../authentication/signing-key.ts";
import { parseTokenFile, TokenFileError } from "../authentication/token-file.ts";
import type { StaticToken } from "../authentication/tokens.ts";
import { createAuthority, issueCertificate, type KeyPair } from "./certificates.ts";

/** What a data directory holds beside the store. */
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
  const authority = await keyPair(directory, "ca", () => createAuthority("longshore", now));
  const server = await keyPair(directory, "apiserver", () => issueServer(authority, now));
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

async function keyPair(directory: string, name: string, make: () => Promise<KeyPair>): Promise<KeyPair> {
  const certificateFile = join(directory, `${name}.crt`);
  const keyFile = join(directory, `${name}.key`);
  const certificate = await readText(certificateFile);
  const key = await readText(keyFile);
  if (certificate !== undefined && key !== undefined) return { certificate, key };
  const made = await make();
  await writePrivateFile(keyFile, made.key);
  await writePrivateFile(certificateFile, made.certificate);
  return made;
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

/** Writes a file that only its owner may read: beside its place, synced, then renamed. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.tmp-${process.pid}`;
  const file = await open(temporary, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}

/** A file that is not ours stands where a kubeconfig is to be written. */
export class KubeconfigInTheWayError extends Error {
  override readonly name = "KubeconfigInTheWayError";
}

/** Replacing someone's own kubeconfig would lose them their clusters. @throws KubeconfigInTheWayError */
export async function requireOwnKubeconfig(path: string): Promise<void> {
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
