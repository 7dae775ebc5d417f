/**
 * The processes of a local cluster: each reads what it needs from the cluster directory, puts the
 * real forms of the seams together and starts one component. Nothing is decided here.
 */
import { fileURLToPath } from "node:url";
import { nodeUser, runApiServer } from "@longshore/apiserver";
import { grpcConnector, grpcListener } from "@longshore/csi";
import { createHttpClient, type KubeClient, loadKubeconfig } from "@longshore/kube";
import { connectDiskCloud, startDiskCloud } from "@longshore/reference-driver";
import type { Component, Host } from "@longshore/runtime";
import { snapshotCrdsUrl } from "@longshore/storage";
import type { CloudCaller } from "@longshore/volumes";
import { startControllerManager } from "../components/controller-manager.ts";
import {
  type DriverSource,
  type EndingComponent,
  startCsiDriverController,
  startCsiDriverOnNode,
  startDriversTogether,
} from "../components/csi-driver.ts";
import type { MakeInTreePlugins } from "../components/make-in-tree-plugins.ts";
import { startNodeAgent } from "../components/node-agent.ts";
import { httpProbeNetwork } from "../containers/http-probe-network.ts";
import { createProcessPodRuntime } from "../containers/process-pod-runtime.ts";
import {
  type ClusterConfig,
  controllerDriverNames,
  driverNames,
  forcedMigrationOf,
  shutdownPeriodsOf,
} from "../layout/cluster-config.ts";
import { type ClusterLayout, clusterLayout } from "../layout/cluster-layout.ts";
import { driverCallWriter } from "../layout/driver-calls.ts";
import { controllerPlace } from "../layout/driver-command.ts";
import { readClusterConfig, readGates } from "../layout/files.ts";
import { controllerManagerUser, csiControllerUser } from "../layout/grant-control-plane.ts";
import { unservedKindWarnings } from "../layout/unserved-kinds.ts";
import { startNodeServer } from "../node-server/http-node-server.ts";
import { controlPlane } from "../platform/embedded-platform.ts";
import { type ProcessEnv, processEnv, processHost } from "./process-env.ts";

/** The kinds of process of a local cluster. */
export const processKinds = [
  "apiserver",
  "disk-cloud",
  "controller-manager",
  "csi-controller",
  "csi-node",
  "node-agent",
] as const;

/** A kind of process. */
export type ProcessKind = (typeof processKinds)[number];

/** Options of a component's process. */
export interface ProcessOptions {
  /** The cluster directory. */
  readonly dir: string;
  /** The node, for the kinds that belong to one. */
  readonly nodeName?: string;
}

/** A started process; `ended` settles when it cannot go on by itself. */
export interface StartedProcess extends Component {
  readonly ended: Promise<string>;
}

interface ProcessContext {
  readonly env: ProcessEnv;
  readonly layout: ClusterLayout;
  readonly config: ClusterConfig;
  readonly host: Host;
  readonly options: ProcessOptions;
}

const starters: Readonly<Record<ProcessKind, (context: ProcessContext) => Promise<StartedProcess>>> = {
  apiserver: startApiServer,
  "disk-cloud": startCloud,
  "controller-manager": startControllers,
  "csi-controller": startCsiController,
  "csi-node": startCsiNode,
  "node-agent": startNode,
};

/**
 * Starts one process's component from what lies in the cluster directory: configuration, gates, kubeconfigs. Resolves once
 * it has started. When `ended` settles, the process exits with the reason, and its supervisor starts it again.
 */
export async function startComponentProcess(
  kind: ProcessKind,
  options: ProcessOptions,
): Promise<StartedProcess> {
  const layout = clusterLayout(options.dir);
  const bootHost = processHost("unprivileged"); // Only reads a file: any form will do.
  const config = await readClusterConfig(bootHost, layout);
  const env = processEnv(options.nodeName === undefined ? kind : `${kind}/${options.nodeName}`);
  return starters[kind]({ env, layout, config, host: processHost(config.hostForm), options });
}

async function startApiServer({ env, layout, config }: ProcessContext): Promise<StartedProcess> {
  const server = await runApiServer(env, {
    dataDir: layout.apiDir,
    port: config.port,
    kubeconfigOut: layout.kubeconfig,
    clients: [
      { user: controllerManagerUser, kubeconfigOut: layout.componentKubeconfig("controller-manager") },
      { user: csiControllerUser, kubeconfigOut: layout.componentKubeconfig("csi-controller") },
      ...config.nodes.map(({ name }) => ({
        user: nodeUser(name),
        kubeconfigOut: layout.nodeKubeconfig(name),
      })),
    ],
    definitionPaths: [fileURLToPath(snapshotCrdsUrl)],
    nodeSocket: (nodeName) =>
      config.nodes.some(({ name }) => name === nodeName) ? layout.nodeSocket(nodeName) : undefined,
    creationWarnings: unservedKindWarnings,
    // Its nodes mount no tokens, and no pod of it asks for one.
    serviceAccounts: false,
    metrics: env.meter,
  });
  return { ended: server.failed.then((error) => error.message), stop: () => server.stop() };
}

async function startCloud({ env, layout, config, host }: ProcessContext): Promise<StartedProcess> {
  const options = { stateDir: layout.cloudDir, instances: cloudInstances(config) };
  const { component } = await startDiskCloud({ ...env, host }, options, layout.cloudSocket);
  return running(component);
}

async function startControllers(context: ProcessContext): Promise<StartedProcess> {
  const { env, layout, config, host } = context;
  let lost: (why: string) => void = () => {};
  const ended = new Promise<string>((resolve) => {
    lost = resolve;
  });
  const manager = startControllerManager(
    {
      ...env,
      kube: await kubeClient(context, layout.componentKubeconfig("controller-manager")),
      cloudFor: cloudFor(context),
    },
    {
      gates: await readGates(host, layout, controlPlane),
      identity: controlPlane,
      snapshots: true,
      ...(await inTreePluginsOf(config)),
      ...forcedMigrationOf(config),
      flexVolumes: { host, directory: layout.flexVolumeDir },
      ...(config.compat === undefined ? {} : { compat: config.compat }),
      onLost: () => lost("the lead was lost"),
    },
  );
  return { ended, stop: () => manager.stop() };
}

/** One process has the drivers of all plugins at its place: a process each would be 32 for eight plugins on three nodes. */
async function startCsiController(context: ProcessContext): Promise<StartedProcess> {
  const { env, layout, config, host } = context;
  const driverEnv = {
    ...env,
    host,
    kube: await kubeClient(context, layout.componentKubeconfig("csi-controller")),
    connector: grpcConnector(env),
    listener: grpcListener(env),
    cloudFor: cloudFor(context),
  };
  await host.makeDirectory(layout.driverSocketDir);
  const sourceOf = driverSource(context, controllerPlace);
  return ending(
    await startDriversTogether(
      controllerDriverNames(config).map(
        (driverName) => () =>
          startCsiDriverController(driverEnv, {
            driverName,
            region: config.region,
            socket: layout.driverSocket(driverName),
            snapshots: true,
            ...sourceOf(driverName),
          }),
      ),
    ),
  );
}

async function startCsiNode(context: ProcessContext): Promise<StartedProcess> {
  const { env, layout, config, host } = context;
  const node = nodeOf(context);
  const driverEnv = {
    ...env,
    host,
    connector: grpcConnector(env),
    listener: grpcListener(env),
    cloudFor: cloudFor(context),
  };
  const sourceOf = driverSource(context, node.name);
  const own = config.ownDriver;
  const kube =
    own?.nodeDeployment === true
      ? await kubeClient(context, layout.componentKubeconfig("csi-controller"))
      : undefined;
  return ending(
    await startDriversTogether(
      driverNames(config).map(
        (driverName) => () =>
          startCsiDriverOnNode(driverEnv, {
            driverName,
            region: config.region,
            nodeName: node.name,
            rootDir: layout.nodeDir(node.name),
            ...sourceOf(driverName),
            ...(kube === undefined || driverName !== own?.name ? {} : { provisionsFor: kube }),
          }),
      ),
    ),
  );
}

function ending(component: EndingComponent): StartedProcess {
  return { ended: component.failed.then((error) => error.message), stop: () => component.stop() };
}

/** Which driver answers at this place, and where its calls are written down. */
function driverSource({ env, layout, config, host }: ProcessContext, place: string) {
  // One writer of the file for all drivers of the place.
  const calls =
    config.recordsDriverCalls === true
      ? { onCall: driverCallWriter({ ...env, host }, layout.driverCallsFile(place), place) }
      : {};
  return (driverName: string): DriverSource => ({
    ...(config.ownDriver?.name === driverName ? { endpoint: layout.ownDriverSocket(place) } : {}),
    ...calls,
  });
}

async function startNode(context: ProcessContext): Promise<StartedProcess> {
  const { env, layout, config, host } = context;
  const node = nodeOf(context);
  const shutdown = shutdownPeriodsOf(config);
  const runtime = createProcessPodRuntime({ ...env, host }, { stateDir: layout.podStateDir(node.name) });
  const agent = startNodeAgent(
    {
      ...env,
      host,
      runtime,
      network: httpProbeNetwork,
      serve: (services) =>
        startNodeServer({ ...services, metrics: () => env.meter.exposition() }, layout.nodeSocket(node.name)),
      kube: await kubeClient(context, layout.nodeKubeconfig(node.name)),
      connector: grpcConnector(env),
      cloudFor: cloudFor(context),
    },
    {
      nodeName: node.name,
      instanceId: node.instanceId,
      zone: node.zone,
      region: config.region,
      rootDir: layout.nodeDir(node.name),
      logDir: layout.podLogDir,
      deviceDir: layout.machineDeviceDir(node.instanceId),
      gates: await readGates(host, layout, node.name),
      ...(await inTreePluginsOf(config)),
      ebsLimit: config.attachLimit,
      flexVolumeDir: layout.flexVolumeDir,
      ...(shutdown === undefined ? {} : { shutdown }),
    },
  );
  return ending(agent);
}

/** The cluster's nodes as the disk cloud's instances. */
export function cloudInstances(config: ClusterConfig) {
  return config.nodes.map((node) => ({
    instanceId: node.instanceId,
    nodeName: node.name,
    zone: node.zone,
    region: config.region,
    attachLimit: config.attachLimit,
  }));
}

/** Loaded only where they are wanted: a process without in-tree plugins has none of their code. */
async function inTreePluginsOf({
  plugins,
  withoutInTreePlugins,
}: ClusterConfig): Promise<{ readonly inTreePlugins?: MakeInTreePlugins }> {
  if (withoutInTreePlugins === true) return {};
  const { inTreePluginsNamed } = await import("../components/in-tree-plugins.ts");
  return { inTreePlugins: inTreePluginsNamed(plugins) };
}

function cloudFor({ env, layout }: ProcessContext) {
  return (caller: CloudCaller) => connectDiskCloud(env, layout.cloudSocket, caller);
}

async function kubeClient({ env, host }: ProcessContext, path: string): Promise<KubeClient> {
  return createHttpClient(env, await loadKubeconfig(host, { path }));
}

function nodeOf({ config, options }: ProcessContext) {
  const node = config.nodes.find((n) => n.name === options.nodeName);
  if (node === undefined) {
    throw new Error(
      `no node "${options.nodeName}" in ${options.dir}: it has ${config.nodes.map((n) => n.name).join(", ")}`,
    );
  }
  return node;
}

function running(component: Component): StartedProcess {
  return { ended: new Promise<string>(() => {}), stop: () => component.stop() };
}
