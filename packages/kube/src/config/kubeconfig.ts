/**
 * Reads a kubeconfig file (Kubernetes documentation, "Organizing Cluster Access Using kubeconfig
 * Files"): contexts, certificates inline or in files, tokens, token files, and programs that return
 * credentials. What we do not support is refused by name, never ignored.
 */
import { createRequire } from "node:module";
import { posix } from "node:path";
import type * as Yaml from "js-yaml";
import {
  anonymous,
  type ClusterConfig,
  ConfigError,
  type ConfigHost,
  type Credential,
  type CredentialSource,
  rereadCredential,
} from "./cluster-config.ts";
import { execCredential } from "./exec-credential.ts";
import { Fields } from "./fields.ts";

const require = createRequire(import.meta.url);

/** Which kubeconfig, and what of it. */
export interface KubeconfigSource {
  /** Absolute path of the file. With `text` it only names it, and is what relative paths start from. */
  readonly path: string;
  /** The content, where it was read already. */
  readonly text?: string;
  /** Context to use; the file's current one when left out. */
  readonly context?: string;
  /** Environment variables of credential programs. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Reads the configuration of one context. @throws ConfigError naming file, field and remedy */
export async function loadKubeconfig(host: ConfigHost, source: KubeconfigSource): Promise<ClusterConfig> {
  const root = parseDocument(source.text ?? (await readKubeconfig(host, source.path)), source.path);
  const contextName =
    source.context ??
    root.requiredText("current-context", "run `kubectl config use-context NAME`, or name a context");
  const context = root.named("contexts", contextName, "context");
  if (context === undefined) {
    throw new ConfigError(
      `${source.path}: there is no context "${contextName}"; there are ${namesIn(root, "contexts")}`,
    );
  }
  const clusterName = context.requiredText("cluster", "name one of the file's clusters");
  const cluster = root.named("clusters", clusterName, "cluster");
  if (cluster === undefined) {
    throw new ConfigError(
      `${context.where}.cluster: there is no cluster "${clusterName}"; there are ${namesIn(root, "clusters")}`,
    );
  }
  const userName = context.text("user");
  const user = userName === undefined ? undefined : root.named("users", userName, "user");
  if (userName !== undefined && user === undefined) {
    throw new ConfigError(
      `${context.where}.user: there is no user "${userName}"; there are ${namesIn(root, "users")}`,
    );
  }
  const files = new KubeconfigFiles(host, posix.dirname(source.path));
  const server = serverOf(cluster);
  const ca = await files.dataOrFile(cluster, "certificate-authority");
  const tlsServerName = cluster.text("tls-server-name");
  const namespace = context.text("namespace");
  const insecureSkipTlsVerify = cluster.flag("insecure-skip-tls-verify");
  if (ca !== undefined && insecureSkipTlsVerify) {
    throw new ConfigError(
      `${cluster.where}: insecure-skip-tls-verify and a certificate authority exclude each other: remove one`,
    );
  }
  return {
    server,
    ...(ca === undefined ? {} : { ca }),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(insecureSkipTlsVerify ? { insecureSkipTlsVerify } : {}),
    ...(namespace === undefined ? {} : { namespace }),
    credentials:
      user === undefined ? anonymous : await credentialsOf(user, files, host, { server, ca }, source),
  };
}

async function readKubeconfig(host: ConfigHost, path: string): Promise<string> {
  if (!path.startsWith("/")) throw new ConfigError(`kubeconfig ${path}: the path must be absolute`);
  let text: string | undefined;
  try {
    text = await host.readFile(path);
  } catch (error) {
    throw new ConfigError(`kubeconfig ${path} cannot be read: check its permissions`, { cause: error });
  }
  if (text === undefined) {
    throw new ConfigError(`kubeconfig ${path} does not exist: check the path`);
  }
  return text;
}

function parseDocument(text: string, path: string): Fields {
  if (text.trim() === "") throw new ConfigError(`kubeconfig ${path} is empty`);
  // Loaded by the first kubeconfig: a process inside a pod has none.
  const { load } = require("js-yaml") as typeof Yaml;
  let document: unknown;
  try {
    document = load(text);
  } catch (error) {
    // The parser quotes the lines around a mistake, and with them perhaps a secret: keep the place only.
    const line = (error as { mark?: { line?: number } }).mark?.line;
    throw new ConfigError(
      `kubeconfig ${path} is not valid YAML${line === undefined ? "" : ` (line ${line + 1})`}`,
    );
  }
  return new Fields(document, path);
}

function namesIn(root: Fields, list: string): string {
  const names = root.list(list).map((element) => new Fields(element, `${root.where}.${list}[]`).text("name"));
  const known = names.filter((name) => name !== undefined);
  return known.length === 0 ? "none" : known.join(", ");
}

function serverOf(cluster: Fields): string {
  const server = cluster.requiredText("server", "write the address of the API server, https://HOST:PORT");
  if (!URL.canParse(server) || !/^https?:$/.test(new URL(server).protocol)) {
    throw new ConfigError(`${cluster.where}.server is not an address: write https://HOST:PORT`);
  }
  if (cluster.has("proxy-url")) {
    throw new ConfigError(`${cluster.where}.proxy-url is not supported: reach the server directly`);
  }
  return server;
}

async function credentialsOf(
  user: Fields,
  files: KubeconfigFiles,
  host: ConfigHost,
  cluster: { readonly server: string; readonly ca: string | undefined },
  source: KubeconfigSource,
): Promise<CredentialSource> {
  for (const field of ["as", "as-uid", "as-groups", "as-user-extra"]) {
    if (user.has(field)) {
      throw new ConfigError(`${user.where}.${field}: impersonation is not supported: use a user of its own`);
    }
  }
  if (user.has("auth-provider")) {
    throw new ConfigError(`${user.where}.auth-provider is no longer supported: use an exec plugin instead`);
  }
  const exec = user.mapping("exec");
  if (exec !== undefined) {
    return execCredential(host, exec, {
      directory: posix.dirname(source.path),
      environment: source.environment ?? {},
      cluster,
    });
  }
  // Read once now, so that a mistake in the file is reported before the first request.
  await files.credential(user);
  return rereadCredential(() => files.credential(user));
}

/** Reads what a kubeconfig refers to. */
class KubeconfigFiles {
  readonly #host: ConfigHost;
  readonly #directory: string;

  constructor(host: ConfigHost, directory: string) {
    this.#host = host;
    this.#directory = directory;
  }

  /** `NAME-data` in base64, else the content of the file `NAME`, as PEM. */
  async dataOrFile(fields: Fields, name: string): Promise<string | undefined> {
    const data = fields.text(`${name}-data`);
    const path = fields.text(name);
    const where = data === undefined ? name : `${name}-data`;
    const pem = data === undefined ? path && (await this.#read(fields, name, path)) : decodeBase64(data);
    if (pem === undefined || pem === "") return undefined;
    if (!pem.includes("-----BEGIN ")) {
      throw new ConfigError(`${fields.where}.${where} holds no PEM: it must begin with -----BEGIN …-----`);
    }
    return pem;
  }

  async credential(user: Fields): Promise<Credential> {
    const cert = await this.dataOrFile(user, "client-certificate");
    const key = await this.dataOrFile(user, "client-key");
    if ((cert === undefined) !== (key === undefined)) {
      const missing = cert === undefined ? "client-certificate" : "client-key";
      throw new ConfigError(`${user.where}.${missing} is missing: a certificate needs its key`);
    }
    const authorization = await this.#authorization(user);
    return {
      ...(authorization === undefined ? {} : { authorization }),
      ...(cert === undefined || key === undefined ? {} : { certificate: { cert, key } }),
    };
  }

  async #authorization(user: Fields): Promise<string | undefined> {
    // As client-go: of a token file and an inline token, the file counts.
    const path = user.text("tokenFile");
    if (path !== undefined) return bearer(await this.#read(user, "tokenFile", path));
    const token = user.text("token");
    if (token !== undefined) return bearer(token);
    const username = user.text("username");
    if (username === undefined) return undefined;
    return `Basic ${encodeBase64(`${username}:${user.text("password") ?? ""}`)}`;
  }

  async #read(fields: Fields, name: string, path: string): Promise<string> {
    const absolute = path.startsWith("/") ? posix.normalize(path) : posix.join(this.#directory, path);
    let text: string | undefined;
    try {
      text = await this.#host.readFile(absolute);
    } catch (error) {
      throw new ConfigError(`${fields.where}.${name}: ${absolute} cannot be read: check its permissions`, {
        cause: error,
      });
    }
    if (text === undefined) throw new ConfigError(`${fields.where}.${name}: ${absolute} does not exist`);
    return text;
  }
}

/** The value of the Authorization header for a token, whose file often ends in a newline. */
export function bearer(token: string): string {
  return `Bearer ${token.trim()}`;
}

function decodeBase64(text: string): string {
  return Buffer.from(text, "base64").toString("utf8");
}

function encodeBase64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}
