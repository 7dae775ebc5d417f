/**
 * A local cluster of separate processes: brings it up under a supervisor, or opens one that runs.
 */

import { grpcConnector, waitUntilReady } from "@longshore/csi";
import {
  createHttpClient,
  isAlreadyExists,
  type KubeClient,
  loadKubeconfig,
  resources,
} from "@longshore/kube";
import type { Platform } from "@longshore/migration";
import { connectDiskCloud } from "@longshore/reference-driver";
import { type Component, errorChain, type Host, type RuntimeEnv } from "@longshore/runtime";
import {
  defaultGroupSnapshotClassAnnotation,
  defaultSnapshotClassAnnotation,
  snapshotResources,
} from "@longshore/storage";
import { requireDriverName } from "../components/csi-driver.ts";
import {
  type ClusterConfig,
  controllerDriverNames,
  driverNames,
  firstGates,
  requireServed,
  shutdownPeriodsOf,
} from "../layout/cluster-config.ts";
import { type ClusterLayout, clusterLayout } from "../layout/cluster-layout.ts";
import { controllerPlace, driverArgv, driverValues, ownDriverPlaces } from "../layout/driver-command.ts";
import {
  ClusterDirectoryError,
  readClusterConfig,
  readGates,
  writeClusterConfig,
  writeGates,
} from "../layout/files.ts";
import { grantControlPlane } from "../layout/grant-control-plane.ts";
import { clusterPlugin, type PluginName } from "../layout/plugins.ts";
import { csiDriversOf, storageClassesOf } from "../layout/shipped-objects.ts";
import { embeddedFindings } from "../platform/embedded-findings.ts";
import { controlPlane, createEmbeddedPlatform, type GateControl } from "../platform/embedded-platform.ts";
import { freePort, makeSharedMount } from "../processes/machine.ts";
import { processHost } from "../processes/process-env.ts";
import type { ProcessKind } from "../processes/start-component-process.ts";
import { type Supervisor, startSupervisor } from "../processes/supervisor.ts";
import { endClusterProcesses, removeCluster, settleCluster, supervisorName } from "./cleanup.ts";
import { claimDirectory, requireOwnProcesses } from "./cluster-directory.ts";
import { agentProcess, processesOf, signalClusterProcess } from "./cluster-processes.ts";
import {
  ClusterStartError,
  lastWords,
  requireRoom,
  roomBytes,
  whileStarting,
} from "./cluster-start-error.ts";
import { type AskedOfCluster, checkAsked, clearEarlierRun } from "./existing-cluster.ts";

/** What a cluster command needs. */
export interface ClusterEnv extends RuntimeEnv {
  readonly host: Host;
}

/** A cluster that runs, as a client of it. */
export interface OpenCluster {
  readonly layout: ClusterLayout;
  readonly config: ClusterConfig;
  readonly kube: KubeClient & { close(): void };
  readonly cloud: ReturnType<typeof connectDiskCloud>;
  /** The same cloud as the user of one provider sees it. */
  cloudOf(provider: PluginName): ReturnType<typeof connectDiskCloud>;
  readonly control: GateControl;
  readonly platform: Platform;
}

/** A cluster that this process supervises. Stopping it keeps all that it holds, so that it can be started again. */
export interface SupervisedCluster extends OpenCluster, Component {
  /** Stops it and removes everything that it has made, disks and all. */
  remove(): Promise<void>;
}

/** Options of {@link upCluster}. */
export interface UpOptions {
  readonly dir: string;
  /** What a new cluster is like. */
  readonly config: ClusterConfig;
  /** Starts a cluster that is in the directory, if it is as requested; left out: the directory must be new or empty. */
  readonly existing?: AskedOfCluster;
  /** Room for its disks on top of what a new cluster needs, in bytes. */
  readonly diskBytes?: number;
  /** Program and first arguments of the longshore command. */
  readonly command: readonly string[];
  readonly signal: AbortSignal;
  readonly onProgress?: (step: string) => void;
}

const readyWithinMs = 60_000;
const pollMs = 25;

/**
 * Brings a cluster up, or starts one again, and waits until its nodes are ready and its driver is registered on each. When
 * that fails, nothing is left of a new one; one that was there before is stopped.
 * @throws ClusterDirectoryError, ClusterStartError
 */
export async function upCluster(base: ClusterEnv, options: UpOptions): Promise<SupervisedCluster> {
  const layout = clusterLayout(options.dir);
  const progress = options.onProgress ?? (() => {});
  const present = options.existing && (await presentCluster(base, layout, options.existing));
  const env = present === undefined ? base : { ...base, host: processHost(present.hostForm) };
  await requireRoom(
    layout.dir,
    present === undefined ? roomBytes.fresh + (options.diskBytes ?? 0) : roomBytes.existing,
  );
  const lock = await claimDirectory(env, layout, present ?? options.config, present !== undefined);
  const supervisor = startSupervisor(env);
  let client: OpenCluster["kube"] | undefined;
  const end = async (settle: (signal: AbortSignal) => Promise<void>) => {
    client?.close();
    await supervisor.stop();
    const never = new AbortController().signal;
    try {
      await endClusterProcesses(env, layout, { isSupervisor: true, signal: never });
      await settle(never);
    } finally {
      lock.release();
    }
  };
  const stop = () =>
    end(async (signal) => {
      await settleCluster(env, layout, "stop", signal);
      await env.host.removeFile(layout.pidFile(supervisorName));
    });
  const remove = () => end((signal) => removeCluster(env, layout, signal));
  try {
    const config = await (present === undefined
      ? prepare(env, layout, options.config)
      : prepareAgain(env, layout, present, options));
    const startedAt = env.clock.now();
    const supervise = superviseWith(supervisor, layout, config, options.command);
    const superviseDriver = superviseOwnDriver(supervisor, layout, config);
    progress("starting API server and disk cloud");
    supervise("apiserver");
    supervise("disk-cloud");
    const waitFor = <T>(
      waitingFor: string,
      work: (signal: AbortSignal) => Promise<T>,
      cause?: () => Promise<string | undefined>,
    ) =>
      whileStarting(
        env,
        supervisor,
        {
          dir: layout.dir,
          withinMs: readyWithinMs,
          waitingFor,
          verb: present === undefined ? "up" : "start",
          ...(cause === undefined ? {} : { cause }),
        },
        options.signal,
        work,
      );
    const cluster = await waitFor("API server and disk cloud", (signal) =>
      openWhenServing(env, layout, config, signal),
    );
    client = cluster.kube;
    progress("starting controllers, driver and nodes");
    await bootstrap(cluster.kube, config, options.signal);
    supervise("controller-manager");
    superviseDriver(controllerPlace);
    supervise("csi-controller");
    for (const node of config.nodes) {
      superviseDriver(node.name);
      supervise("csi-node", node.name);
      supervise("node-agent", node.name);
    }
    await waitFor(
      "the nodes and their driver",
      async (signal) => {
        // Until its agent runs, a node is as Ready as the earlier run has left it.
        if (present !== undefined) await agentsRun(env, cluster, startedAt, signal);
        await Promise.all([requireOwnDriverName(env, cluster, signal), nodesReady(env, cluster, signal)]);
      },
      () => silentDriver(env.host, layout, config),
    );
    return { ...cluster, stop, remove };
  } catch (error) {
    // The caller needs the error of the start; a failed clean-up is only logged.
    await (present === undefined ? remove() : stop()).catch((failure) =>
      env.logger.error(errorChain(failure)),
    );
    throw error;
  }
}

/** The cluster that is in the directory. @throws ClusterDirectoryError, ClusterStartError when it is not as requested */
async function presentCluster(
  env: ClusterEnv,
  layout: ClusterLayout,
  asked: AskedOfCluster,
): Promise<ClusterConfig | undefined> {
  if ((await env.host.stat(layout.markFile)) === undefined) return undefined;
  if ((await env.host.stat(layout.configFile)) === undefined) return undefined;
  const present = await readClusterConfig(env.host, layout);
  checkAsked(layout, present, asked);
  return present;
}

/** What is there of a cluster stays; its port too, unless another program has taken it meanwhile. */
async function prepareAgain(
  env: ClusterEnv,
  layout: ClusterLayout,
  present: ClusterConfig,
  { existing, signal }: UpOptions,
): Promise<ClusterConfig> {
  await clearEarlierRun(env, layout, present, signal);
  const asked = existing?.port ?? 0;
  const kept = asked === 0 ? await freePort(present.port) : undefined;
  const config = { ...present, port: kept ?? (await requirePort(asked)) };
  if (config.port !== present.port) await writeClusterConfig(env.host, layout, config);
  return config;
}

/** Resolves once every node's agent has renewed its lease after that time. */
async function agentsRun(
  env: Pick<RuntimeEnv, "clock">,
  { kube, config }: OpenCluster,
  since: Date,
  signal: AbortSignal,
): Promise<void> {
  for (const { name } of config.nodes) {
    const isRenewed = async () => {
      const lease = await kube.get(resources.leases, { namespace: "kube-node-lease", name }, { signal });
      return Date.parse(lease?.spec?.renewTime ?? "") >= since.getTime();
    };
    while (!(await isRenewed())) await env.clock.sleep(pollMs, signal);
  }
}

/** Opens a cluster that runs. @throws ClusterDirectoryError when none does */
export async function openCluster(env: ClusterEnv, dir: string): Promise<OpenCluster> {
  const layout = clusterLayout(dir);
  const config = await readClusterConfig(env.host, layout);
  const kube = createHttpClient(env, await loadKubeconfig(env.host, { path: layout.kubeconfig }));
  const control = fileGateControl(env.host, layout);
  const cloudOf = (provider: PluginName) =>
    connectDiskCloud(env, layout.cloudSocket, { path: "csi", component: "operator", provider });
  const cloud = cloudOf("aws-ebs");
  const processes = () => processesOf(env, layout);
  const nodeNames = async (signal: AbortSignal) =>
    (await kube.list(resources.nodes, { signal })).items.map(({ metadata }) => metadata.name);
  const findings: NonNullable<Platform["findings"]> = (signal, onWaiting) =>
    embeddedFindings(
      { clock: env.clock, connector: grpcConnector(env), cloud, processes, nodeNames },
      { layout, config },
      signal,
      onWaiting,
    );
  const platform = createEmbeddedPlatform({ clock: env.clock, kube, control, findings });
  return { layout, config, kube, control, cloud, cloudOf, platform };
}

/**
 * Stops a cluster, supervised by this process or another: its processes end, its volumes are unmounted, and all that it holds stays.
 * @throws ClusterDirectoryError when there is none
 */
export async function stopCluster(env: ClusterEnv, dir: string, signal: AbortSignal): Promise<void> {
  const layout = clusterLayout(dir);
  const config = await readClusterConfig(env.host, layout);
  const ofCluster = { ...env, host: processHost(config.hostForm) };
  await requireOwnProcesses(ofCluster.host, layout);
  const nodeMs = (shutdownPeriodsOf(config)?.totalMs ?? 0) + agentEndMs;
  // The supervisor ends its nodes one after the other.
  await endClusterProcesses(ofCluster, layout, { supervisorMs: nodeMs * config.nodes.length, signal });
  await settleCluster(ofCluster, layout, "stop", signal);
}

/** Takes a cluster down, supervised by this process or another, and deletes all that it holds. @returns false when there was none */
export async function downCluster(env: ClusterEnv, dir: string, signal: AbortSignal): Promise<boolean> {
  const layout = clusterLayout(dir);
  if ((await env.host.readDirectory(dir)) === undefined) return false;
  // All of it is about to be removed: only what `cluster up` has made may be taken for a cluster.
  const config = await readClusterConfig(env.host, layout).catch(() => undefined);
  if (config === undefined && (await env.host.stat(layout.markFile)) === undefined) {
    throw new ClusterDirectoryError(`${dir} holds no cluster; nothing was removed`);
  }
  const host = config === undefined ? env.host : processHost(config.hostForm);
  await requireOwnProcesses(host, layout);
  await endClusterProcesses({ ...env, host }, layout, { signal });
  if ((await host.stat(dir)) !== undefined) await removeCluster({ ...env, host }, layout, signal);
  return true;
}

/** Gates in files, restarts by SIGTERM: the supervisor starts the process again. */
export function fileGateControl(host: Host, layout: ClusterLayout): GateControl {
  return {
    readGates: (name) => readGates(host, layout, name),
    async writeGates(name, values) {
      requireServed(await readClusterConfig(host, layout), values);
      await writeGates(host, layout, name, values);
    },
    async restart(name) {
      await signalClusterProcess(host, layout, name === controlPlane ? name : agentProcess(name), "SIGTERM");
    },
  };
}

async function prepare(env: ClusterEnv, layout: ClusterLayout, asked: ClusterConfig): Promise<ClusterConfig> {
  const config = { ...asked, port: await requirePort(asked.port) };
  if (config.hostForm === "kernel") await makeSharedMount(layout.dir);
  for (const dir of [layout.logDir, layout.podLogDir, layout.apiDir, layout.cloudDir, layout.ownDriverDir]) {
    await env.host.makeDirectory(dir);
  }
  for (const node of config.nodes) {
    await env.host.makeDirectory(layout.nodeDir(node.name));
    await env.host.makeDirectory(layout.podStateDir(node.name));
    await writeGates(env.host, layout, node.name, firstGates(config));
  }
  await writeGates(env.host, layout, controlPlane, firstGates(config));
  // Last: a directory with this file counts as a cluster that can be started.
  await writeClusterConfig(env.host, layout, config);
  return config;
}

/** @throws ClusterStartError */
async function requirePort(asked: number): Promise<number> {
  const port = await freePort(asked);
  if (port !== undefined) return port;
  throw new ClusterStartError(
    `port ${asked} of the loopback interface cannot be used: choose another \`port\`, or 0 for any`,
  );
}

/** How long a node's agent may take to end after its pods, in milliseconds. */
const agentEndMs = 5000;

function superviseWith(
  supervisor: Supervisor,
  layout: ClusterLayout,
  config: ClusterConfig,
  command: readonly string[],
) {
  const shutdownMs = shutdownPeriodsOf(config)?.totalMs;
  return (kind: ProcessKind, nodeName?: string) => {
    const name = nodeName === undefined ? kind : `${kind}-${nodeName}`;
    const node = nodeName === undefined ? [] : ["--node", nodeName];
    supervisor.supervise({
      name,
      argv: [...command, "run", kind, "--cluster-dir", layout.dir, ...node],
      pidFile: layout.pidFile(name),
      logFile: layout.logFile(name),
      ...(kind === "node-agent" && shutdownMs !== undefined ? { killAfterMs: shutdownMs + agentEndMs } : {}),
    });
  };
}

/** Starts the user's own driver at a place, where the cluster has one. */
function superviseOwnDriver(supervisor: Supervisor, layout: ClusterLayout, config: ClusterConfig) {
  return (place: string) => {
    if (config.ownDriver === undefined || !ownDriverPlaces(config).includes(place)) return;
    const { workingDir } = config.ownDriver;
    const name = `driver-${place}`;
    supervisor.supervise({
      name,
      argv: driverArgv(config.ownDriver.command, driverValues(config, layout, place)),
      ...(workingDir === undefined ? {} : { cwd: workingDir }),
      pidFile: layout.pidFile(name),
      logFile: layout.logFile(name),
    });
  };
}

/**
 * Asks the user's own driver for its name as soon as it answers: its places find that out as well, but only end and are
 * started again. @throws DriverNameError
 */
async function requireOwnDriverName(
  env: ClusterEnv,
  { config, layout }: OpenCluster,
  signal: AbortSignal,
): Promise<void> {
  const { ownDriver } = config;
  if (ownDriver === undefined) return;
  const [place = controllerPlace] = ownDriverPlaces(config);
  const endpoint = layout.ownDriverSocket(place);
  const connection = grpcConnector(env).connect(endpoint);
  try {
    await waitUntilReady(env, connection, { signal, timeoutMs: 5000 });
    await requireDriverName(connection, endpoint, ownDriver.name, signal);
  } finally {
    connection.close();
  }
}

/** Where the user's own driver does not listen, with its last words; undefined when it listens everywhere, or there is none. */
async function silentDriver(
  host: Host,
  layout: ClusterLayout,
  config: ClusterConfig,
): Promise<string | undefined> {
  for (const place of ownDriverPlaces(config)) {
    const socket = layout.ownDriverSocket(place);
    if ((await host.stat(socket)) !== undefined) continue;
    const said = lastWords((await host.readFile(layout.logFile(`driver-${place}`))) ?? "");
    return `the driver runs, but has made no socket ${socket}; its last words: ${said || "none"}`;
  }
  return undefined;
}

async function openWhenServing(
  env: ClusterEnv,
  layout: ClusterLayout,
  config: ClusterConfig,
  signal: AbortSignal,
): Promise<OpenCluster> {
  for (;;) {
    const kubeconfig = await env.host.stat(layout.kubeconfig);
    const socket = await env.host.stat(layout.cloudSocket);
    if (kubeconfig !== undefined && socket !== undefined) {
      const cluster = await openCluster(env, layout.dir);
      const serving = await cluster.kube
        .get(resources.namespaces, { name: "kube-system" }, { signal })
        .catch(() => undefined);
      if (serving !== undefined) return { ...cluster, config };
      cluster.kube.close();
    }
    await env.clock.sleep(pollMs, signal);
  }
}

/** The objects that a distribution would ship: the drivers' CSIDrivers, the classes, and the secrets that these name. */
export async function bootstrap(kube: KubeClient, config: ClusterConfig, signal: AbortSignal): Promise<void> {
  const unlessExists = (error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  };
  await grantControlPlane(kube, config, signal);
  for (const driver of csiDriversOf(config)) {
    await kube.create(resources.csiDrivers, driver, { signal }).catch(unlessExists);
  }
  for (const storageClass of storageClassesOf(config)) {
    await kube.create(resources.storageClasses, storageClass, { signal }).catch(unlessExists);
  }
  for (const secret of config.plugins.flatMap((name) => clusterPlugin(name).secrets)) {
    await kube.create(resources.secrets, secret, { signal }).catch(unlessExists);
  }
  const { volumeSnapshotClasses, volumeGroupSnapshotClasses } = snapshotResources;
  for (const [resource, annotation] of [
    [volumeSnapshotClasses, defaultSnapshotClassAnnotation],
    [volumeGroupSnapshotClasses, defaultGroupSnapshotClassAnnotation],
  ] as const) {
    if ((await kube.servedVersion(resource, { signal })) === undefined) continue;
    for (const driver of controllerDriverNames(config)) {
      // The default class of a driver is one of its own (snapshot controller, default classes).
      const name = driver === driverNames(config)[0] ? snapshotClassName : `${snapshotClassName}-${driver}`;
      const metadata = { name, annotations: { [annotation]: "true" } };
      const snapshotClass = { metadata, driver, deletionPolicy: "Delete" as const };
      await kube.create(resource, snapshotClass, { signal }).catch(unlessExists);
    }
  }
}

/** The class of snapshots, and that of group snapshots, that the cluster has from the start. */
const snapshotClassName = "disk-snapshots";

/** Resolves once every node is Ready and lists all drivers. */
export async function nodesReady(
  env: Pick<RuntimeEnv, "clock">,
  cluster: Pick<OpenCluster, "kube" | "config">,
  signal: AbortSignal,
): Promise<void> {
  const wanted = driverNames(cluster.config);
  for (const { name } of cluster.config.nodes) {
    for (;;) {
      const node = await cluster.kube.get(resources.nodes, { name }, { signal });
      const csiNode = await cluster.kube.get(resources.csiNodes, { name }, { signal });
      const ready = node?.status?.conditions?.some((c) => c.type === "Ready" && c.status === "True");
      const registered = new Set(csiNode?.spec.drivers?.map((d) => d.name));
      if (ready === true && wanted.every((driver) => registered.has(driver))) break;
      await env.clock.sleep(pollMs, signal);
    }
  }
}
