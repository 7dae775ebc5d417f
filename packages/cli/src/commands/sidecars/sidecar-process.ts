/**
 * The process around a sidecar, whichever it is: real seams from flags, HTTP endpoint, signals, and how it ends.
 *
 *     SIGTERM, Ctrl-C ──► stop, let go of leases ──► exit 0        (a second one ends it at once)
 *     cannot go on    ──► reason into the termination log, stop ──► exit 1
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import type { CsiConnection } from "@longshore/csi";
import type { ClusterConfig, FlowControl, HttpKubeClient, KubeClient, LeasePolicy } from "@longshore/kube";
import {
  type Component,
  createLogger,
  createMeter,
  errorChain,
  type Logger,
  noMeter,
  type PrometheusMeter,
  type RuntimeEnv,
  stopAll,
  systemClock,
  systemRandom,
} from "@longshore/runtime";
import { exitCodes, InterruptedError, interruptible, UsageError, untilAborted } from "../../exit.ts";
import { kubeconfigOf } from "../../kubeconfig.ts";
import { version } from "../../version.ts";
import type { ReadFlags } from "./add-flag-command.ts";
import type { driverFlags, httpFlags, kubeFlags, leaderElectionFlags, processFlags } from "./common-flags.ts";
import type { FlagTable, FlagValues } from "./flag-table.ts";
import { addProcessMetrics } from "./process-metrics.ts";
import { metricsRoute, type Routes, serveHttp } from "./serve-http.ts";

/**
 * What a sidecar's process started. The process stops it on SIGTERM or Ctrl-C and exits 0; when `failed` resolves (a lost
 * lease, a lost driver), it writes the reason to the termination log, stops it, and exits 1.
 */
export interface Started extends Component {
  /** Resolves when it cannot go on. */
  readonly failed: Promise<Error>;
}

/**
 * What a sidecar is started with: the seams made from its flags. The sidecar adds its health checks to `routes`, and hands
 * over each part that must stop with the process (`own`); it installs no signal handlers and does not end the process.
 */
export interface Shell {
  readonly env: RuntimeEnv;
  /** Where health answers are put. */
  readonly routes: Routes;
  /** Stopped after the sidecar, the last first. */
  own(...parts: readonly Component[]): void;
}

type ProcessValues = FlagValues<typeof processFlags>;
type HttpValues = Partial<FlagValues<typeof httpFlags>>;

/** Runs a sidecar until a signal comes or it cannot go on, then ends the process. */
export async function runSidecarProcess<T extends FlagTable>(
  name: string,
  table: T,
  flags: ReadFlags<T>,
  start: (shell: Shell) => Promise<Started>,
): Promise<void> {
  const values = flags.values as unknown as ProcessValues & HttpValues;
  if (values.version) {
    process.stdout.write(`longshore ${name} ${version}\n`);
    return;
  }
  const logger = createLogger({
    format: values["logging-format"] === "json" ? "json" : "human",
    level: values.v >= 4 ? "debug" : "info",
  }).child({ component: name });
  const obsolete = [...flags.given].filter((given) => table[given]?.deprecated !== undefined);
  if (obsolete.length > 0) {
    logger.warn("flags that have no effect any more", { flags: obsolete.map((flag) => `--${flag}`).join() });
  }
  logger.info("starting", { version });
  // A defect: nothing can be relied upon any more, not even that it stops in good order.
  process.on("uncaughtException", (error) => process.exit(ended(logger, values, error)));
  let failure: unknown;
  try {
    await interruptible((signal) => runUntil(logger, values, start, signal));
  } catch (error) {
    if (!(error instanceof InterruptedError)) failure = error;
  }
  // Connections that are still open would keep the process alive, as one that does nothing.
  process.exit(failure === undefined ? exitCodes.done : ended(logger, values, failure));
}

/** How long the parts have to stop. A call to the driver is given up, not waited for. */
const stopWithinMs = 10_000;

async function runUntil(
  logger: Logger,
  values: HttpValues,
  start: (shell: Shell) => Promise<Started>,
  signal: AbortSignal,
): Promise<void> {
  const address = httpAddress(values);
  const meter = address === undefined ? undefined : createMeter();
  const env: RuntimeEnv = {
    clock: systemClock,
    random: systemRandom,
    logger,
    meter: meter ?? noMeter,
  };
  const parts: Component[] = [];
  let failure: Error | undefined;
  try {
    const routes: Routes = new Map();
    let onComplete = () => {};
    const complete = new Promise<void>((resolve) => {
      onComplete = resolve;
    });
    if (address !== undefined && meter !== undefined) {
      addMetrics(routes, values["metrics-path"] ?? "/metrics", meter);
      parts.push(await serveHttp(logger, `--${address.flag}`, address.text, routes, complete));
    }
    const starting = start({ env, routes, own: (...more) => parts.push(...more) }).then((started) => {
      parts.push(started);
      onComplete();
      return started.failed;
    });
    // A failure is reported below, unless the process is on its way out already.
    starting.catch(() => {});
    // The signal also counts during the start: a program that provides credentials may take its time.
    failure = await Promise.race([starting, untilAborted(signal).then(() => undefined)]);
    if (failure === undefined) logger.info("stopping");
    else logger.error("cannot go on", { error: failure });
  } finally {
    // What does not stop must be ended, so that it is started again.
    systemClock.timer(stopWithinMs, () => {
      logger.error("did not stop in time", { withinMs: stopWithinMs });
      process.exit(exitCodes.failed);
    });
    await stopAll(parts);
  }
  if (failure !== undefined) throw failure;
}

function addMetrics(routes: Routes, path: string, meter: PrometheusMeter): void {
  if (!path.startsWith("/")) throw new UsageError(`--metrics-path: "${path}" must begin with /`);
  routes.set(path, metricsRoute(meter));
  meter
    .gauge("process_start_time_seconds", {
      help: "Start time of the process since unix epoch in seconds.",
    })
    .set(systemClock.now().getTime() / 1000 - process.uptime());
  addProcessMetrics(meter);
}

function httpAddress(
  values: HttpValues,
): { readonly flag: "http-endpoint" | "metrics-address"; readonly text: string } | undefined {
  const { "http-endpoint": endpoint = "", "metrics-address": metrics = "" } = values;
  if (endpoint !== "" && metrics !== "") {
    throw new UsageError("only one of --metrics-address and --http-endpoint can be set: use --http-endpoint");
  }
  if (endpoint !== "") return { flag: "http-endpoint", text: endpoint };
  return metrics === "" ? undefined : { flag: "metrics-address", text: metrics };
}

/** Writes the reason to the log and to Kubernetes; returns the exit code. */
function ended(logger: Logger, values: ProcessValues, failure: unknown): number {
  logger.error("ended", { error: failure });
  const path = values["termination-log-path"];
  try {
    // In a pod it is there; anywhere else the log is enough.
    if (path !== "" && existsSync(path)) writeFileSync(path, `${errorChain(failure)}\n`);
  } catch (error) {
    logger.warn("the termination log cannot be written", { path, error });
  }
  return failure instanceof UsageError ? exitCodes.usage : exitCodes.failed;
}

/** The socket of the driver: `--csi-address`, else ADDRESS. */
export function driverAddress(flags: ReadFlags<typeof driverFlags>): string {
  const { ADDRESS } = process.env;
  const given = flags.given.has("csi-address") ? undefined : ADDRESS;
  return given === undefined || given === "" ? flags.values["csi-address"] : given;
}

/** A connection to the driver; the reference stores whatever it answers. */
export async function connectDriver(
  shell: Shell,
  flags: ReadFlags<typeof driverFlags & Pick<typeof processFlags, "compat">>,
): Promise<CsiConnection> {
  const { CsiEndpointError, grpcConnector } = await import("@longshore/csi");
  const { reachProblem } = await import("../driver-check/must-be-reachable.ts");
  try {
    const answers = flags.values.compat === "reference" ? "masked" : "checked";
    const address = driverAddress(flags);
    const connection = grpcConnector(shell.env).connect(address, { answers });
    shell.own({ stop: async () => connection.close() });
    // It is waited for: in a pod the driver may start after its sidecars. Elsewhere the path may be wrong.
    const problem = await reachProblem(address);
    if (problem !== undefined) shell.env.logger.warn(`waiting for the driver: ${problem}`);
    return connection;
  } catch (error) {
    if (error instanceof CsiEndpointError) throw new UsageError(`--csi-address: ${error.message}`);
    throw error;
  }
}

/** Kubernetes as this process reaches it. */
export interface KubeAccess {
  readonly kube: KubeClient;
  /** Leases are renewed over connections of their own, so that renewals never queue behind work. */
  readonly leases: KubeClient;
  /** Namespace of the service account, where there is one. */
  readonly namespace: string | undefined;
}

/** Connects to Kubernetes: `--kubeconfig`, else the service account of the pod. */
export async function connectKube(shell: Shell, values: FlagValues<typeof kubeFlags>): Promise<KubeAccess> {
  const { createHttpClient } = await import("@longshore/kube");
  const config = await clusterConfig(values);
  const open = (flowControl?: FlowControl): HttpKubeClient => {
    const client = createHttpClient(shell.env, config, {
      dropManagedFields: true,
      ...(flowControl === undefined ? {} : { flowControl }),
    });
    shell.own({ stop: () => client.close() });
    return client;
  };
  const { "kube-api-qps": qps, "kube-api-burst": burst } = values;
  return {
    kube: open(qps === undefined ? undefined : { qps, burst: Math.max(1, burst ?? Math.ceil(2 * qps)) }),
    leases: open(),
    namespace: config.namespace,
  };
}

async function clusterConfig({
  kubeconfig,
  master,
}: Pick<FlagValues<typeof kubeFlags>, "kubeconfig" | "master">): Promise<ClusterConfig> {
  const { anonymous, inClusterConfig } = await import("@longshore/kube");
  const { kernelHost } = await import("@longshore/runtime");
  // As client-go's BuildConfigFromFlags: an address alone means a server without authentication.
  if (kubeconfig === "" && master !== "") return { server: master, credentials: anonymous };
  const config =
    kubeconfig === ""
      ? await inClusterConfig(kernelHost(), process.env)
      : await kubeconfigOf("--kubeconfig", { path: resolve(kubeconfig), environment: environment() });
  return master === "" ? config : { ...config, server: master };
}

/** The environment of programs that provide credentials. */
function environment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** Where the service account's namespace is, also where the rest comes from a kubeconfig (client-go, leader election). */
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/** How this replica contends for leases, or undefined without `--leader-election`. */
export function leasePolicy(
  values: FlagValues<typeof leaderElectionFlags>,
  access: KubeAccess,
  releaseOnStop: boolean,
): LeasePolicy | undefined {
  if (!values["leader-election"]) return undefined;
  const leaseDurationMs = values["leader-election-lease-duration"];
  const renewDeadlineMs = values["leader-election-renew-deadline"];
  const retryPeriodMs = values["leader-election-retry-period"];
  if (leaseDurationMs <= renewDeadlineMs) {
    throw new UsageError(
      "--leader-election-lease-duration must be longer than --leader-election-renew-deadline",
    );
  }
  if (renewDeadlineMs <= retryPeriodMs * 1.2) {
    throw new UsageError(
      "--leader-election-renew-deadline must be longer than 1.2 times --leader-election-retry-period",
    );
  }
  const labels = values["leader-election-labels"];
  return {
    namespace: values["leader-election-namespace"] || process.env.POD_NAMESPACE || accountNamespace(),
    identity: values["leader-election-identity"] || hostname(),
    leaseDurationMs,
    renewDeadlineMs,
    retryPeriodMs,
    releaseOnStop,
    recordEvents: true,
    kube: access.leases,
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
  };
}

function accountNamespace(): string {
  try {
    return readFileSync(namespaceFile, "utf8").trim() || "default";
  } catch {
    return "default"; // Not in a pod.
  }
}
