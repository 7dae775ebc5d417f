/**
 * A real Kubernetes control plane for tests: etcd, kube-apiserver (RBAC and Node authorisation, static tokens)
 * and, on demand, kube-controller-manager, from the binaries in `KUBEBUILDER_ASSETS`. Everything lives in one
 * temporary directory and on free ports, so several can run side by side.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Daemon, eventually, freePorts, run, startDaemon } from "./processes.ts";

/** Someone who may talk to the API server; what they may do is RBAC's business. */
export interface TestUser {
  /** e.g. `system:node:node-1` or `system:serviceaccount:kube-system:ebs-csi-controller`. */
  readonly name: string;
  readonly groups?: readonly string[];
}

/** How the kube-controller-manager runs. */
export interface ControllerManagerOptions {
  /** Its `--controllers`; default: volumes, their protection, namespaces, garbage collection, service accounts. */
  readonly controllers?: readonly string[];
  readonly featureGates?: Readonly<Record<string, boolean>>;
  /** Its `--cloud-provider`; default none. */
  readonly cloudProvider?: string;
  /** Further arguments, e.g. `--attach-detach-reconcile-sync-period=5s`. */
  readonly args?: readonly string[];
}

/** What to start. */
export interface ControlPlaneOptions {
  /** Whether, and how, the kube-controller-manager runs; default not at all. */
  readonly controllerManager?: boolean | ControllerManagerOptions;
  /** Feature gates of the API server. */
  readonly featureGates?: Readonly<Record<string, boolean>>;
  /** Feature gates of the controller manager (a shorthand for `controllerManager.featureGates`). */
  readonly kcmFeatureGates?: Readonly<Record<string, boolean>>;
  /** Users in addition to the administrator; their tokens are in {@link ControlPlane.tokens}. */
  readonly users?: readonly TestUser[];
  /** Further arguments of the API server. */
  readonly apiServerArgs?: readonly string[];
  /** Whether a pod's service account must exist; default: when a controller manager is there to make them. */
  readonly requireServiceAccounts?: boolean;
}

/** An answer of the API server. */
export interface ApiAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any kind
  readonly body: any;
}

/** A running control plane. */
export interface ControlPlane {
  /** `https://127.0.0.1:PORT`, no trailing slash. */
  readonly url: string;
  /** PEM file of the authority that signed the server's certificate. */
  readonly caPath: string;
  /** Bearer token of a member of `system:masters`. */
  readonly adminToken: string;
  /** Bearer tokens of {@link ControlPlaneOptions.users}, by user name. */
  readonly tokens: Readonly<Record<string, string>>;
  /** Kubeconfig of the administrator. */
  readonly kubeconfigPath: string;
  /** Everything of this control plane on disk; removed by `stop`. */
  readonly directory: string;
  /** Writes a kubeconfig for one of the users and returns its path. */
  kubeconfigFor(user: string): Promise<string>;
  /** One API call, by default as administrator; a body is sent as JSON, or as `contentType` says. */
  call(
    method: string,
    path: string,
    body?: unknown,
    options?: { readonly token?: string; readonly contentType?: string },
  ): Promise<ApiAnswer>;
  /** (Re)starts the controller manager, e.g. with other gates. */
  startControllerManager(options?: ControllerManagerOptions): Promise<void>;
  /** Ends the controller manager at once, as `kill -9` would. */
  stopControllerManager(): Promise<void>;
  /** Kills the API server and starts it again on the same port and data; resolves when it is ready. */
  restartApiServer(): Promise<void>;
  /** Has etcd forget every version before `revision`, default the last, as the API server does every five minutes. */
  compact(revision?: number): Promise<void>;
  /** The last lines of a program's log. */
  logTail(program: "etcd" | "kube-apiserver" | "kube-controller-manager"): string;
  /** Ends everything and removes the directory. */
  stop(): Promise<void>;
}

const defaultControllers = [
  "attachdetach",
  "persistentvolume-binder",
  "persistentvolume-expander",
  "pv-protection",
  "pvc-protection",
  "namespace",
  "garbagecollector",
  "serviceaccount",
  "serviceaccount-token",
] as const;

/** Starts a control plane; resolves when it serves. Reject or `stop` leaves nothing behind. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const attemptsMax = 3;
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryStart(options);
    } catch (error) {
      // A free port can be taken between our look and the server's start.
      const portTaken = error instanceof DaemonError && /address already in use/.test(error.message);
      if (!portTaken || attempt === attemptsMax) throw error;
    }
  }
}

async function tryStart(options: ControlPlaneOptions): Promise<ControlPlane> {
  const assets = assetsDirectory();
  const directory = await mkdtemp(join(tmpdir(), "ls-kube-"));
  const daemons = new Map<string, Daemon>();
  const stopAndRemove = async () => {
    for (const name of ["kube-controller-manager", "kube-apiserver", "etcd"]) await daemons.get(name)?.stop();
    await rm(directory, { recursive: true, force: true });
  };
  const start = (name: string, args: readonly string[]) => {
    const daemon = startDaemon(name, join(assets, name), args, join(directory, `${name}.log`));
    daemons.set(name, daemon);
    return daemon;
  };

  try {
    const [etcdPort, peerPort, apiPort] = (await freePorts(3)) as [number, number, number];
    const url = `https://127.0.0.1:${apiPort}`;
    const files = await writeCredentials(directory, options.users ?? []);
    const call: ControlPlane["call"] = (method, path, body, callOptions = {}) =>
      callApi(
        url,
        files.ca,
        callOptions.token ?? files.adminToken,
        method,
        path,
        body,
        callOptions.contentType,
      );
    const kubeconfigFor = async (user: string): Promise<string> => {
      const token = user === "admin" ? files.adminToken : files.tokens[user];
      if (token === undefined) throw new Error(`no user ${user}: name it in the option users`);
      const path = join(directory, `${user.replaceAll(/[^a-z0-9.-]/gi, "_")}.kubeconfig`);
      await writeFile(path, JSON.stringify(kubeconfig(url, files.caPath, user, token)), { mode: 0o600 });
      return path;
    };

    start("etcd", etcdArgs(directory, etcdPort, peerPort));
    const startApiServer = async () => {
      const daemon = start("kube-apiserver", apiServerArgs(options, directory, etcdPort, apiPort));
      await whileRunning(daemon, "the API server is ready", async () => {
        const ready = await call("GET", "/readyz");
        // The API server makes this namespace after it has called itself ready.
        return ready.status === 200 && (await call("GET", "/api/v1/namespaces/default")).status === 200;
      });
    };
    await startApiServer();
    const kubeconfigPath = await kubeconfigFor("admin");

    const startControllerManager = async (manager: ControllerManagerOptions = {}) => {
      await daemons.get("kube-controller-manager")?.stop();
      const gates = { ...options.kcmFeatureGates, ...manager.featureGates };
      const daemon = start(
        "kube-controller-manager",
        controllerManagerArgs({ ...manager, featureGates: gates }, directory, kubeconfigPath),
      );
      const controllers = manager.controllers ?? defaultControllers;
      if (!controllers.includes("serviceaccount-token")) return;
      // Without the token of its service account the API server refuses every pod of the namespace.
      await whileRunning(daemon, "the default service account has a token", async () => {
        const { body } = await call("GET", "/api/v1/namespaces/default/serviceaccounts/default");
        return (body.secrets?.length ?? 0) > 0;
      });
    };
    const manager = options.controllerManager ?? false;
    if (manager !== false) await startControllerManager(manager === true ? {} : manager);

    return {
      url,
      caPath: files.caPath,
      adminToken: files.adminToken,
      tokens: files.tokens,
      kubeconfigPath,
      directory,
      kubeconfigFor,
      call,
      startControllerManager,
      stopControllerManager: async () => daemons.get("kube-controller-manager")?.stop(),
      restartApiServer: async () => {
        await daemons.get("kube-apiserver")?.stop();
        await startApiServer();
      },
      compact: (revision) => compactEtcd(`http://127.0.0.1:${etcdPort}`, revision),
      logTail: (program) => daemons.get(program)?.logTail() ?? "",
      stop: stopAndRemove,
    };
  } catch (error) {
    await stopAndRemove();
    throw error;
  }
}

function assetsDirectory(): string {
  const assets = process.env.KUBEBUILDER_ASSETS;
  if (assets === undefined || !existsSync(join(assets, "kube-apiserver"))) {
    throw new Error("KUBEBUILDER_ASSETS names no directory with kube-apiserver: run npm run test:kubernetes");
  }
  return assets;
}

/** A program that does not do what it was started for, with the last lines of its log. */
class DaemonError extends Error {
  override readonly name = "DaemonError";
  constructor(what: string, logTail: string, cause?: unknown) {
    super(`${what}; its log ends with:\n${logTail}`, { cause });
  }
}

/** Waits for `probe`, and fails at once, with the program's last lines, when the program has ended. */
async function whileRunning(daemon: Daemon, what: string, probe: () => Promise<boolean>): Promise<void> {
  const ended = Symbol();
  const outcome = await eventually<true | typeof ended>(
    what,
    async () => (daemon.running() ? (await probe()) || undefined : ended),
    90_000,
  ).catch((error: unknown) => {
    throw new DaemonError(`${daemon.name}: ${what}: never`, daemon.logTail(), error);
  });
  if (outcome === ended) throw new DaemonError(`${daemon.name} ended before ${what}`, daemon.logTail());
}

function etcdArgs(directory: string, port: number, peerPort: number): string[] {
  const client = `http://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  return [
    `--data-dir=${join(directory, "etcd")}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ];
}

async function compactEtcd(url: string, wanted?: number): Promise<void> {
  const call = async (path: string, body: object) => {
    const answer = await fetch(`${url}/v3/kv/${path}`, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd, ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { readonly header: { readonly revision: string } };
  };
  const anyKey = Buffer.from([0]).toString("base64");
  const revision = wanted ?? (await call("range", { key: anyKey })).header.revision;
  await call("compaction", { revision, physical: true });
}

function apiServerArgs(
  options: ControlPlaneOptions,
  directory: string,
  etcdPort: number,
  port: number,
): string[] {
  // Without a controller manager the service accounts that this plugin requires of every pod are not made.
  const withoutAccounts = !(options.requireServiceAccounts ?? (options.controllerManager ?? false) !== false);
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    `--secure-port=${port}`,
    `--tls-cert-file=${join(directory, "server.pem")}`,
    `--tls-private-key-file=${join(directory, "server-key.pem")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${join(directory, "accounts-key.pem")}`,
    `--service-account-signing-key-file=${join(directory, "accounts-key.pem")}`,
    `--token-auth-file=${join(directory, "tokens.csv")}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--allow-privileged=true",
    "--watch-cache=true",
    ...(withoutAccounts ? ["--disable-admission-plugins=ServiceAccount"] : []),
    ...featureGatesArg(options.featureGates),
    ...(options.apiServerArgs ?? []),
  ];
}

function controllerManagerArgs(
  options: ControllerManagerOptions,
  directory: string,
  kubeconfigPath: string,
): string[] {
  return [
    `--kubeconfig=${kubeconfigPath}`,
    "--leader-elect=false",
    "--port=0",
    "--secure-port=0",
    // A claim and a volume that were seen in the wrong order meet at the next resync: not after the usual 15 s.
    "--pvclaimbinder-sync-period=1s",
    `--controllers=${(options.controllers ?? defaultControllers).join(",")}`,
    `--service-account-private-key-file=${join(directory, "accounts-key.pem")}`,
    `--root-ca-file=${join(directory, "server.pem")}`,
    `--cloud-provider=${options.cloudProvider ?? ""}`,
    ...featureGatesArg(options.featureGates),
    ...(options.args ?? []),
  ];
}

function featureGatesArg(gates: Readonly<Record<string, boolean>> = {}): string[] {
  const pairs = Object.entries(gates).map(([gate, on]) => `${gate}=${on}`);
  return pairs.length === 0 ? [] : [`--feature-gates=${pairs.join(",")}`];
}

interface Credentials {
  readonly ca: Buffer;
  readonly caPath: string;
  readonly adminToken: string;
  readonly tokens: Record<string, string>;
}

/** The server's certificate (its own authority), the key of service accounts, and the token file. */
async function writeCredentials(directory: string, users: readonly TestUser[]): Promise<Credentials> {
  const caPath = join(directory, "server.pem");
  await run("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ls-kube".split(
      " ",
    ),
    ..."-addext subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc".split(" "),
    ...["-keyout", join(directory, "server-key.pem"), "-out", caPath],
  ]);
  const accountsKey = join(directory, "accounts-key.pem");
  await run("openssl", ["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", accountsKey]);
  const token = () => randomBytes(16).toString("hex");
  const adminToken = token();
  const tokens = Object.fromEntries(users.map((user) => [user.name, token()]));
  const lines = [
    `${adminToken},admin,admin,"system:masters"`,
    ...users.map(({ name, groups = [] }) => `${tokens[name]},${name},${name},"${groups.join(",")}"`),
  ];
  await writeFile(join(directory, "tokens.csv"), `${lines.join("\n")}\n`, { mode: 0o600 });
  return { ca: await readFile(caPath), caPath, adminToken, tokens };
}

function kubeconfig(url: string, caPath: string, user: string, token: string): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: url, "certificate-authority": caPath } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user } }],
    "current-context": "test",
  };
}

function callApi(
  url: string,
  ca: Buffer,
  token: string,
  method: string,
  path: string,
  body: unknown,
  contentType = "application/json",
): Promise<ApiAnswer> {
  return new Promise((resolve, reject) => {
    const headers: Record<string, string> = { authorization: `Bearer ${token}`, accept: "application/json" };
    if (body !== undefined) headers["content-type"] = contentType;
    const request = httpsRequest(new URL(path, url), { method, headers, ca, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject);
      response.once("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        const json = response.headers["content-type"]?.startsWith("application/json") ?? false;
        resolve({ status: response.statusCode ?? 0, body: json ? JSON.parse(text) : text });
      });
    });
    request.once("error", reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
