/**
 * The reference driver with its sidecars: on a node with the registrar, as controller with provisioner,
 * attacher and resizer. Driver and sidecars of one place share a process and talk over the driver's socket.
 */
import {
  type CsiConnection,
  type CsiConnector,
  type CsiListener,
  type CsiServices,
  driverNameOf,
  forwardingServices,
  observedServices,
  type ServedCall,
  waitUntilReady,
} from "@longshore/csi";
import type { KubeClient } from "@longshore/kube";
import { createReferenceDriver, type ProviderCloud } from "@longshore/reference-driver";
import {
  type Component,
  foreignText,
  type Host,
  type RuntimeEnv,
  stopAll,
  withDeadline,
} from "@longshore/runtime";
import { type SidecarsOptions, startNodeDriverRegistrar, startSidecars } from "@longshore/sidecars";
import { type CloudCaller, kubeletPaths } from "@longshore/volumes";
import { clusterPlugins } from "../layout/plugins.ts";
import { keepingShareKeys, shareDriverName } from "./keep-share-keys.ts";

/** The seams of a driver. */
export interface CsiDriverEnv extends RuntimeEnv {
  readonly host: Host;
  readonly connector: CsiConnector;
  readonly listener: CsiListener;
  cloudFor(caller: CloudCaller): ProviderCloud;
}

/** Which driver answers, and the observer of its calls. */
export interface DriverSource {
  /** Socket of a driver that runs elsewhere, to which every call is passed on; the reference driver when left out. */
  readonly endpoint?: string;
  /** Called for every call that the driver has answered, before the answer leaves. */
  readonly onCall?: (call: ServedCall) => Promise<void> | void;
}

/** Longest that a driver elsewhere may take for a call, in milliseconds; its callers have deadlines of their own. */
const forwardedWithinMs = 15 * 60_000;

/** A driver asks the provider of the plugin that it takes over from; one that is of none has the disks of EBS. */
function callerOf(driverName: string): CloudCaller {
  const plugin = clusterPlugins.find((candidate) => candidate.driverName === driverName);
  return { path: "csi", component: driverName, ...(plugin === undefined ? {} : { provider: plugin.name }) };
}

/** Longest that a driver elsewhere may take until it is ready, in milliseconds; what starts it may have to fetch it first. */
const readyWithinMs = 10 * 60_000;

/** A driver elsewhere did not become ready in time, or its probe failed for good (the cause). */
export class DriverNotReadyError extends Error {
  override readonly name = "DriverNotReadyError";
}

/** A driver elsewhere is another one than the cluster was made for. */
export class DriverNameError extends Error {
  override readonly name = "DriverNameError";
  constructor(endpoint: string, found: string, wanted: string) {
    super(
      `the driver at ${endpoint} calls itself ${foreignText(found, 256)}, but this cluster is to have ${wanted}: give it that name in its command`,
    );
  }
}

/** Waits for a driver elsewhere to be ready, so that who asks here never sees it half started. @throws DriverNotReadyError, DriverNameError */
async function answering(
  env: CsiDriverEnv,
  { driverName, endpoint = "", onCall }: DriverSource & { readonly driverName: string },
  reference: () => CsiServices,
): Promise<{ readonly services: CsiServices; close(): void }> {
  const elsewhere = endpoint === "" ? undefined : env.connector.connect(endpoint);
  if (elsewhere !== undefined) {
    await becomingReady(env, elsewhere, endpoint, driverName).catch((error: unknown) => {
      elsewhere.close();
      throw error;
    });
  }
  const services = elsewhere === undefined ? reference() : forwardingServices(elsewhere, forwardedWithinMs);
  return {
    services: onCall === undefined ? services : observedServices(services, onCall),
    close: () => elsewhere?.close(),
  };
}

async function becomingReady(
  env: CsiDriverEnv,
  elsewhere: CsiConnection,
  endpoint: string,
  driverName: string,
): Promise<void> {
  try {
    await withDeadline(env.clock, readyWithinMs, new AbortController().signal, (signal) =>
      waitUntilReady(env, elsewhere, { signal, timeoutMs: 5000 }),
    );
  } catch (cause) {
    const limit = `${readyWithinMs / 60_000} minutes`;
    throw new DriverNotReadyError(
      `the driver at ${endpoint} was not ready within ${limit}: start it, or correct \`endpoint\``,
      { cause },
    );
  }
  await requireDriverName(elsewhere, endpoint, driverName, new AbortController().signal);
}

/** Asks a driver elsewhere that is ready for its name. @throws DriverNameError when it is not the wanted one */
export async function requireDriverName(
  connection: CsiConnection,
  endpoint: string,
  wanted: string,
  signal: AbortSignal,
): Promise<void> {
  const name = await driverNameOf(connection, { signal, timeoutMs: 5000 });
  if (name !== wanted) throw new DriverNameError(endpoint, name, wanted);
}

/** Options of {@link startCsiDriverOnNode}. */
export interface CsiDriverOnNodeOptions extends DriverSource {
  readonly driverName: string;
  /** The region of the cluster's zones; left out: not known. */
  readonly region?: string;
  readonly nodeName: string;
  /** The kubelet root directory; driver and registration sockets go to their places below it. */
  readonly rootDir: string;
  /** The name of the driver's directory among the kubelet's plugins, where its socket is; default the driver's name. */
  readonly directory?: string;
  /** The node makes its own volumes (`--node-deployment`), for the claims of this API server; left out: a controller does. */
  readonly provisionsFor?: KubeClient;
}

/** A component that may come to its end by itself. */
export interface EndingComponent extends Component {
  /** Resolves with the reason when the component cannot go on; a process exits then and is restarted. */
  readonly failed: Promise<Error>;
}

/** Where the reference driver of this name makes the volumes of pods that name it themselves. */
export function ephemeralVolumesDir(rootDir: string, driverName: string): string {
  return `${rootDir}/ephemeral-volumes/${driverName}`;
}

/**
 * Starts the node service on its socket below the kubelet root, and its registrar, with a provisioner where the node makes its own
 * volumes; resolves once the service listens. For a
 * driver elsewhere it waits until that is ready, ten minutes at most. `stop` closes both; what is mounted stays.
 */
export async function startCsiDriverOnNode(
  env: CsiDriverEnv,
  options: CsiDriverOnNodeOptions,
): Promise<EndingComponent> {
  const { driverName, region, nodeName, rootDir, directory = driverName } = options;
  const socket = kubeletPaths.csiSocket(rootDir, directory);
  await env.host.makeDirectory(socket.slice(0, socket.lastIndexOf("/")));
  await env.host.makeDirectory(kubeletPaths.registrationDir(rootDir));
  const driver = await answering(env, options, () =>
    createReferenceDriver(
      { ...env, cloud: env.cloudFor(callerOf(driverName)) },
      {
        driverName,
        region,
        nodeName,
        services: "node",
        recordsFile: `${rootDir}/driver-records/${driverName}.json`,
        ephemeralDir: ephemeralVolumesDir(rootDir, driverName),
      },
    ),
  );
  const server = await env.listener.serve(socket, driver.services);
  const connection = env.connector.connect(socket);
  const registrar = startNodeDriverRegistrar(
    { ...env, csi: connection },
    { kubeletRegistrationPath: socket, registrationDir: kubeletPaths.registrationDir(rootDir) },
  );
  const sidecars =
    options.provisionsFor === undefined
      ? undefined
      : startSidecars(
          { ...env, kube: options.provisionsFor, csi: connection },
          { sidecars: { provisioner: { nodeDeployment: { nodeName } } } },
        );
  return {
    failed: Promise.race([registrar.failed, ...(sidecars === undefined ? [] : [sidecars.failed])]),
    async stop() {
      await stopAll([
        { stop: () => server.close() },
        registrar,
        ...(sidecars === undefined ? [] : [sidecars]),
      ]);
      connection.close();
      driver.close();
    },
  };
}

/**
 * Starts the drivers of one place as one component, side by side: it fails when one of them does. When one cannot be
 * started, the others are stopped. @throws what that one threw
 */
export async function startDriversTogether(
  starts: readonly (() => Promise<EndingComponent>)[],
): Promise<EndingComponent> {
  const started = await Promise.allSettled(starts.map((start) => start()));
  const running = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const failure = started.find((result) => result.status === "rejected");
  if (failure !== undefined) {
    await stopAll(running);
    throw failure.reason;
  }
  return {
    failed: Promise.race(running.map(({ failed }) => failed)),
    stop: () => stopAll(running),
  };
}

/** Options of {@link startCsiDriverController}. */
export interface CsiDriverControllerOptions extends DriverSource {
  readonly driverName: string;
  /** The region of the cluster's zones; left out: not known. */
  readonly region?: string;
  /** Where the controller's socket is made. */
  readonly socket: string;
  /** Sidecars to run with the driver; default {@link defaultSidecars}. Those the driver has no use for do not run. */
  readonly sidecars?: SidecarsOptions["sidecars"];
  /** Runs the snapshotter as well: where the CRDs of snapshots are installed; default false. */
  readonly snapshots?: boolean;
}

const defaultSidecars: SidecarsOptions["sidecars"] = { provisioner: {}, attacher: {}, resizer: {} };

/**
 * Starts the controller service with its sidecars, which share its connection and their caches; resolves once the service
 * listens. For a driver elsewhere it waits until that is ready, ten minutes at most.
 */
export async function startCsiDriverController(
  env: CsiDriverEnv & { readonly kube: KubeClient },
  options: CsiDriverControllerOptions,
): Promise<EndingComponent> {
  const { driverName, region, socket } = options;
  const driver = await answering(env, options, () => {
    const driverEnv = { ...env, cloud: env.cloudFor(callerOf(driverName)) };
    const services = createReferenceDriver(driverEnv, { driverName, region, services: "controller" });
    return driverName === shareDriverName ? keepingShareKeys(driverEnv, services) : services;
  });
  const server = await env.listener.serve(socket, driver.services);
  const csi = env.connector.connect(socket);
  const snapshotter = options.snapshots === true ? { snapshotter: { groupSnapshots: true } } : {};
  const beside = { ...snapshotter, ...(options.sidecars ?? defaultSidecars) };
  const sidecars = startSidecars({ ...env, csi }, { sidecars: beside });
  return {
    failed: sidecars.failed,
    async stop() {
      await stopAll([{ stop: () => server.close() }, sidecars]);
      csi.close();
      driver.close();
    },
  };
}
