/**
 * A whole cluster in one process: the same components as the cluster of processes, on the in-process
 * forms of the seams. Scenario tests and the simulation run it under a virtual clock.
 *
 * A component is started, stopped and dropped by name. To drop one is to crash it: nothing of it is
 * stopped, so `isolate` must have given it seams that can be cut.
 */
import {
  type ApiServer,
  createApiServer,
  type MemoryBackup,
  type MemoryStore,
  memoryStore,
  nodeUser,
  restoredMemoryStore,
  type UserInfo,
} from "@longshore/apiserver";
import {
  type CsiConnector,
  type CsiListener,
  type InProcessCsi,
  inProcessCsi,
  type ServedCall,
  withSocketFiles,
} from "@longshore/csi";
import type { KubeClient, KubeObject, Resource, Stored } from "@longshore/kube";
import type { CrossingMark, GateValues, Platform } from "@longshore/migration";
import { createDiskCloud, type DiskCloudService, type ProviderCloud } from "@longshore/reference-driver";
import {
  type Component,
  type Random,
  type RuntimeEnv,
  SimulatedDisks,
  SimulatedHost,
} from "@longshore/runtime";
import { restoredObjects } from "@longshore/storage";
import type { CloudCaller } from "@longshore/volumes";
import { startControllerManager } from "../components/controller-manager.ts";
import {
  type DriverSource,
  startCsiDriverController,
  startCsiDriverOnNode,
  startDriversTogether,
} from "../components/csi-driver.ts";
import { inTreePluginsNamed } from "../components/in-tree-plugins.ts";
import { startNodeAgent } from "../components/node-agent.ts";
import type { PodRuntime } from "../containers/pod-runtime.ts";
import { noProbeNetwork, type ProbeNetwork } from "../containers/probe-network.ts";
import { createProgramPodRuntime, type Program } from "../containers/program-pod-runtime.ts";
import { readPodLogs } from "../containers/read-pod-logs.ts";
import {
  type ClusterConfig,
  driverNames,
  firstGates,
  forcedMigrationOf,
  requireServed,
  shutdownPeriodsOf,
} from "../layout/cluster-config.ts";
import { controllerPlace } from "../layout/driver-command.ts";
import { controllerManagerUser, csiControllerUser } from "../layout/grant-control-plane.ts";
import { clusterPlugin } from "../layout/plugins.ts";
import { controlPlane, createEmbeddedPlatform } from "../platform/embedded-platform.ts";
import { hostWithDrivers, type InProcessFlexVolumes } from "./in-process-drivers.ts";
import { bootstrap } from "./process-cluster.ts";

/** Everything that a component of the cluster touches. */
export interface Seams extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly host: SimulatedHost;
  readonly connector: CsiConnector;
  readonly listener: CsiListener;
  readonly runtime: PodRuntime;
  readonly network: ProbeNetwork;
  cloudFor(caller: CloudCaller): ProviderCloud;
}

/** Options of {@link createInProcessCluster}. */
export interface InProcessClusterOptions {
  readonly config: ClusterConfig;
  /** What containers can run, by program name; it gets the node's host. */
  readonly programs: (host: SimulatedHost) => Readonly<Record<string, Program>>;
  /** Gates of all components as the cluster begins, in place of those of its configuration. */
  readonly gates?: GateValues;
  /** Stands between a component (by name, at each start) and its seams. */
  readonly isolate?: (componentName: string, seams: Seams) => Seams;
  readonly onMark?: (mark: CrossingMark, signal: AbortSignal) => Promise<void>;
  /** CustomResourceDefinitions of snapshots; with them, snapshots are made. */
  readonly snapshotDefinitions?: readonly KubeObject[];
  /** Called for every call that the driver has answered: at `controller`, or at a node. */
  readonly onDriverCall?: (place: string, call: ServedCall) => void;
  /** A second controller manager, which leads when the first does not; default false. */
  readonly standby?: boolean;
  /** Flexvolume drivers of nodes and control plane; left out: none are looked for. */
  readonly flexVolumes?: InProcessFlexVolumes<Seams>;
  /**
   * The name of a driver's directory among the plugins of a node's kubelet, asked whenever the node's drivers start: another version may have
   * another one. Left out: the driver's name.
   */
  readonly driverDirectory?: (nodeName: string, driverName: string) => string;
  /** A component that ends by itself is started again after a second, and again until it starts, as a supervisor does; default false. */
  readonly restartsEnded?: boolean;
}

/** The cluster, as its owner handles it. */
export interface InProcessCluster extends Component {
  readonly config: ClusterConfig;
  /** A client that no fault stands before. */
  readonly kube: KubeClient;
  readonly cloud: DiskCloudService;
  readonly csi: InProcessCsi;
  readonly disks: SimulatedDisks;
  readonly platform: Platform;
  /** Every component's name, in the order of start. */
  readonly componentNames: readonly string[];
  /** Objects as they are stored at this instant, for those who watch. */
  objects<T extends KubeObject>(resource: Resource<T>): readonly Stored<T>[];
  hostOf(nodeName: string): SimulatedHost;
  /** The machine of the controller manager. */
  readonly controlPlaneHost: SimulatedHost;
  /** The root directory of the node's kubelet. */
  rootDirOf(nodeName: string): string;
  /** Logs of every pod that has had this name in the default namespace, on whatever node. */
  podLogs(podName: string): Promise<readonly string[]>;
  /** Starts a component that does not run. */
  start(componentName: string): Promise<void>;
  /** Forgets a component without stopping it, also one that is starting or stopping: a crash. */
  drop(componentName: string): void;
  /** Stops a component in order, as who removes it does; fine when it does not run. */
  shutDown(componentName: string): Promise<void>;
  /** Stops and starts it. */
  restart(componentName: string): Promise<void>;
  /** True while the component runs. */
  isRunning(componentName: string): boolean;
  /**
   * Restarts the API server on the same store: every watch breaks.
   * @param random a stream that has not been used; default the first one from its beginning, with which UIDs come again
   */
  restartApiServer(random?: Random): void;
  /** A backup of all objects as they are now. */
  backUp(): MemoryBackup;
  /**
   * Restarts the API server on a store that is restored from a backup. Components that run go on; `longshore cluster` has the same done with the
   * control plane stopped (docs/playbooks/control-plane-restored-mid-crossing.md).
   * @param random a stream that has not been used
   */
  restore(backup: MemoryBackup, random: Random): void;
}

/** The name of the second controller manager. */
export const standbyManager = `${controlPlane}-2`;

/** Directories of a simulated node. */
const rootDirOf = (nodeName: string) => `/n/${nodeName}`;
/** The state of the disk cloud. */
const cloudDir = "/cloud";
/** Where the machines' devices are, by their names: in a directory that all hosts have in common. */
const deviceDir = "/dev/cloud";
/** Where containers' output goes, on each node's host. */
const podLogDir = "/logs";

/** Makes the cluster and starts every component. */
export async function createInProcessCluster(
  env: RuntimeEnv,
  options: InProcessClusterOptions,
): Promise<InProcessCluster> {
  const { config } = options;
  const signal = new AbortController().signal;
  // As long as the API server of processes remembers: changes that are kept for ever are never garbage.
  const storeOptions = { now: () => env.clock.monotonicMs() };
  let store: MemoryStore = memoryStore(storeOptions);
  const definitions = options.snapshotDefinitions ?? [];
  const snapshots = definitions.length > 0;
  let api: ApiServer = createApiServer(env, { store, definitions });
  await api.start();
  const kube = followingClient(() => api);
  const disks = new SimulatedDisks();
  const csi = inProcessCsi(env);
  // Every node reaches the shares of the cloud, as over a network.
  const isShared = config.plugins.some((name) => clusterPlugin(name).isShared);
  const shares = isShared ? { sharesDir: `${cloudDir}/shares` } : {};
  const cloudHost = new SimulatedHost({ name: "cloud", disks, ...shares });
  const cloud = await createDiskCloud(
    { ...env, host: cloudHost },
    {
      stateDir: cloudDir,
      deviceDir,
      instances: config.nodes.map((node) => ({
        instanceId: node.instanceId,
        nodeName: node.name,
        zone: node.zone,
        region: config.region,
        attachLimit: config.attachLimit,
      })),
    },
  );
  const nodes = new Map(
    config.nodes.map((node) => {
      const host = new SimulatedHost({ name: node.name, disks, ...shares });
      return [node.name, { node, host, runtime: createProgramPodRuntime(env.clock, options.programs(host)) }];
    }),
  );
  const nodeNamed = (name: string) => {
    const found = nodes.get(name);
    if (found === undefined) throw new Error(`no node "${name}" in this cluster`);
    return found;
  };
  const gates = new Map<string, GateValues>();
  const gatesOf = (name: string) => gates.get(name) ?? options.gates ?? firstGates(config);

  const starts = new Map<string, number>();
  /** A stream for each start: a component that comes again does not draw what it has drawn before. */
  const randomOf = (componentName: string) => {
    const before = starts.get(componentName) ?? 0;
    starts.set(componentName, before + 1);
    return env.random.fork(before === 0 ? componentName : `${componentName} again ${before}`);
  };

  const seamsOf = (componentName: string, nodeName: string | undefined, as = kube): Seams => {
    const place = nodeName === undefined ? undefined : nodeNamed(nodeName);
    const host = place?.host ?? cloudHost;
    const bare: Seams = {
      ...env,
      random: randomOf(componentName),
      logger: env.logger.child({ component: componentName }),
      kube: as,
      host,
      connector: csi,
      listener: withSocketFiles(csi, host),
      runtime: place?.runtime ?? createProgramPodRuntime(env.clock, {}),
      network: noProbeNetwork,
      cloudFor: (caller) => cloud.forCaller(caller),
    };
    const { flexVolumes } = options;
    const seams =
      flexVolumes === undefined
        ? bare
        : {
            ...bare,
            host: hostWithDrivers(host, (path, how) =>
              flexVolumes.run({ componentName, seams: bare, path, options: how }),
            ),
          };
    return options.isolate?.(componentName, seams) ?? seams;
  };

  const inTree =
    config.withoutInTreePlugins === true ? {} : { inTreePlugins: inTreePluginsNamed(config.plugins) };
  const callObserverOf = (place: string): DriverSource => {
    const { onDriverCall } = options;
    return onDriverCall === undefined ? {} : { onCall: (call) => onDriverCall(place, call) };
  };
  const directoryOf = (nodeName: string, driverName: string) =>
    options.driverDirectory === undefined ? {} : { directory: options.driverDirectory(nodeName, driverName) };
  const starters = new Map<string, () => Promise<Component>>();
  const managers = options.standby === true ? [controlPlane, standbyManager] : [controlPlane];
  const flexVolumeDir = options.flexVolumes?.directory;
  for (const name of managers) {
    starters.set(name, async () => {
      const seams = seamsOf(name, undefined, clientOf(controllerManagerUser));
      const flexVolumes =
        flexVolumeDir === undefined ? {} : { flexVolumes: { host: seams.host, directory: flexVolumeDir } };
      return startControllerManager(seams, {
        gates: gatesOf(controlPlane),
        identity: name,
        snapshots,
        ...inTree,
        ...flexVolumes,
        ...forcedMigrationOf(config),
      });
    });
  }
  const drivers = driverNames(config);
  const shutdown = shutdownPeriodsOf(config);
  starters.set("csi-controller", () => {
    const seams = seamsOf("csi-controller", undefined, clientOf(csiControllerUser));
    const observer = callObserverOf(controllerPlace);
    return startDriversTogether(
      drivers.map(
        (driverName) => () =>
          startCsiDriverController(seams, {
            driverName,
            region: config.region,
            socket: `/${driverName}.sock`,
            snapshots,
            ...observer,
          }),
      ),
    );
  });
  for (const { node } of nodes.values()) {
    const rootDir = rootDirOf(node.name);
    starters.set(`csi-node/${node.name}`, () => {
      const seams = seamsOf(`csi-node/${node.name}`, node.name);
      const observer = callObserverOf(node.name);
      return startDriversTogether(
        drivers.map(
          (driverName) => () =>
            startCsiDriverOnNode(seams, {
              driverName,
              region: config.region,
              nodeName: node.name,
              rootDir,
              ...directoryOf(node.name, driverName),
              ...observer,
            }),
        ),
      );
    });
    starters.set(node.name, async () =>
      startNodeAgent(seamsOf(node.name, node.name, clientOf(nodeUser(node.name))), {
        nodeName: node.name,
        instanceId: node.instanceId,
        zone: node.zone,
        region: config.region,
        rootDir,
        logDir: podLogDir,
        deviceDir: `${deviceDir}/${node.instanceId}`,
        gates: gatesOf(node.name),
        ...inTree,
        ebsLimit: config.attachLimit,
        ...(flexVolumeDir === undefined ? {} : { flexVolumeDir }),
        ...(shutdown === undefined ? {} : { shutdown }),
      }),
    );
  }

  // Each asks as itself: what another node's pods need is not a node's to read.
  const clientOf = (user: UserInfo) => followingClient(() => api, user);

  const running = new Map<string, Component>();
  /** Ended components that are to start again; one that is stopped or crashes meanwhile is not. */
  const restarting = new Map<string, Component>();
  const supervise = (name: string, component: Component & { readonly failed?: unknown }) => {
    const isMine = () => restarting.get(name) === component;
    const again = async () => {
      await component.failed;
      if (running.get(name) !== component) return;
      await stop(name);
      restarting.set(name, component);
      // What fails as it starts is started again, too.
      while (isMine()) {
        await env.clock.sleep(1000, signal);
        if (!isMine()) return;
        await start(name).then(
          () => restarting.delete(name),
          () => {},
        );
      }
    };
    again().catch(() => {});
  };
  const starting = new Map<string, Promise<void>>();
  const stopping = new Map<string, Promise<void>>();
  /** Ends the wait for a component that starts or stops, because it has crashed. */
  const crashed = new Map<string, () => void>();
  const untilCrash = (name: string) => new Promise<void>((resolve) => crashed.set(name, resolve));
  const start = async (name: string) => {
    const starter = starters.get(name);
    if (starter === undefined) throw new Error(`no component "${name}" in this cluster`);
    // Two of one identity would have one lease.
    await stopping.get(name);
    if (running.has(name)) return;
    // Two who ask at once, such as a restart for new gates and a machine that comes back, start it once.
    const begun = starting.get(name) ?? startWith(name, starter);
    starting.set(name, begun);
    await begun;
  };
  const startWith = async (name: string, starter: () => Promise<Component>) => {
    const crash = untilCrash(name).then(() => undefined);
    try {
      const component = await Promise.race([starter(), crash]);
      if (component === undefined) throw new Error(`${name} crashed as it started`);
      running.set(name, component);
      if (options.restartsEnded === true && "failed" in component) supervise(name, component);
    } finally {
      starting.delete(name);
    }
  };
  const stop = async (name: string) => {
    restarting.delete(name);
    await (starting.get(name) ?? stopping.get(name))?.catch(() => {});
    const component = running.get(name);
    running.delete(name);
    if (component === undefined) return;
    const ended = Promise.race([component.stop(), untilCrash(name)]).finally(() => stopping.delete(name));
    stopping.set(name, ended);
    await ended;
  };
  const platform = createEmbeddedPlatform({
    clock: env.clock,
    kube,
    ...(options.onMark === undefined ? {} : { onMark: options.onMark }),
    control: {
      readGates: async (name) => gatesOf(name),
      writeGates: async (name, values) => {
        requireServed(config, values);
        gates.set(name, values);
      },
      restart: async (name) => {
        // No replica may lead with other gates than those that are set.
        for (const each of name === controlPlane ? managers : [name]) {
          await stop(each);
          await start(each);
        }
      },
    },
  });

  const restartApiServer = (random: Random) => {
    const before = api;
    api = createApiServer({ ...env, random }, { store });
    void api.start();
    void before.stop();
  };

  await bootstrap(kube, config, signal);
  for (const name of starters.keys()) await start(name);
  return {
    config,
    kube,
    cloud,
    csi,
    disks,
    platform,
    componentNames: [...starters.keys()],
    objects: <T extends KubeObject>(resource: Resource<T>) => {
      const table = resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
      return store.table(table).list() as readonly Stored<T>[];
    },
    hostOf: (name) => nodeNamed(name).host,
    controlPlaneHost: cloudHost,
    rootDirOf,
    async podLogs(podName) {
      const hosts = [...nodes.values()].map(({ host }) => host);
      const logs = hosts.map((host) => readPodLogs(host, podLogDir, "default", podName));
      return (await Promise.all(logs)).flat();
    },
    start,
    drop: (name) => {
      restarting.delete(name);
      running.delete(name);
      crashed.get(name)?.();
    },
    shutDown: stop,
    async restart(name) {
      await stop(name);
      await start(name);
    },
    isRunning: (name) => running.has(name),
    restartApiServer: (random = env.random) => restartApiServer(random),
    backUp: () => store.backUp(),
    restore(backup, random) {
      store = restoredMemoryStore(backup, env.clock.now(), { ...storeOptions, restoredObjects });
      restartApiServer(random);
    },
    async stop() {
      restarting.clear();
      for (const name of [...running.keys()].reverse()) await stop(name);
      for (const { runtime } of nodes.values()) runtime.losePower();
      await cloud.stop();
      await api.stop();
    },
  };
}

/** A client of whichever API server runs now; may do everything unless a user is named. */
function followingClient(api: () => ApiServer, user?: UserInfo): KubeClient {
  const now = () => api().client(user);
  return {
    get: (resource, ref, options) => now().get(resource, ref, options),
    list: (resource, options) => now().list(resource, options),
    watch: (resource, options) => now().watch(resource, options),
    create: (resource, object, options) => now().create(resource, object, options),
    update: (resource, object, options) => now().update(resource, object, options),
    updateStatus: (resource, object, options) => now().updateStatus(resource, object, options),
    patch: (resource, ref, patch, options) => now().patch(resource, ref, patch, options),
    delete: (resource, ref, options) => now().delete(resource, ref, options),
    createSubresource: (resource, ref, subresource, body, options) =>
      now().createSubresource(resource, ref, subresource, body, options),
    servedVersion: (resource, options) => now().servedVersion(resource, options),
  };
}
