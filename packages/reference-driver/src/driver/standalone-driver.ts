/**
 * The reference driver as a process of its own: with the disk cloud in it, so that it needs no cluster, and
 * all its state in one directory:
 *
 *     STATE-DIR/state.json, disks/, snapshots/, calls.jsonl     the disk cloud
 *     STATE-DIR/nodes/NODE-ID.json                              how volumes are staged and published there
 *     STATE-DIR/ephemeral/NODE-ID/                              ephemeral volumes there
 *     STATE-DIR/cloud.sock                                      the cloud, for node services in other processes
 *
 * Invariant: one process has the directory's cloud; a second one is refused, a node service alone connects to it.
 */
import type { CsiListener } from "@longshore/csi";
import { type Component, type Host, type RuntimeEnv, stopAll } from "@longshore/runtime";
import type { CloudCaller } from "@longshore/volumes";
import {
  type CloudInstance,
  connectDiskCloud,
  type ProviderCloud,
  startDiskCloud,
} from "../disk-cloud/index.ts";
import { driverKind, providerOfDriver } from "./driver-kinds.ts";
import type { FaultName } from "./faults/index.ts";
import { createReferenceDriver } from "./reference-driver.ts";

/** What the process works with. */
export interface StandaloneDriverEnv extends RuntimeEnv {
  readonly host: Host;
  readonly listener: CsiListener;
}

/** Options of {@link startStandaloneDriver}. */
export interface StandaloneDriverOptions {
  /** Where it listens: a unix socket. */
  readonly endpoint: string;
  /** Where its state is; made when missing. An absolute path, so short that a socket fits into it. */
  readonly stateDir: string;
  readonly driverName: string;
  readonly services: "all" | "controller" | "node";
  /** The node that the node service is on. */
  readonly nodeId: string;
  /** Topology key, of a driver that has a topology; default `topology.NAME/zone`. */
  readonly topologyKey?: string;
  /** The zones of the driver, the node's own first; default one. */
  readonly zones?: readonly string[];
  /** Most volumes that can be published to the node; default as many as the provider of the driver's name allows: 39 unless it is one of the eight. */
  readonly maxVolumes?: number;
  /** Room for volumes in each zone, in bytes; default as much as anyone may want. */
  readonly capacityBytes?: bigint;
  /** The file system of a blank volume for which none is asked; default ext4. */
  readonly defaultFsType?: string;
  /** Pods may have volumes of the driver inline: the node service makes them; default false. */
  readonly ephemeral?: boolean;
  /** Rules to break. */
  readonly faults?: readonly FaultName[];
}

const registerEveryMs = 500;

/** Starts it; when this resolves it serves. Stopping it leaves volumes, mounts and devices as they are. */
export async function startStandaloneDriver(
  env: StandaloneDriverEnv,
  options: StandaloneDriverOptions,
): Promise<Component> {
  const { host } = env;
  const { stateDir, driverName, nodeId, services, zones = ["zone-1"], faults = [] } = options;
  const provider = providerOfDriver(driverName);
  const caller: CloudCaller = { provider, path: "csi", component: driverName };
  const node: CloudInstance = {
    instanceId: nodeId,
    nodeName: nodeId,
    zone: zones[0] ?? "zone-1",
    region: "local",
    attachLimit: 39,
    ...(options.maxVolumes === undefined ? {} : { attachLimits: { [provider]: options.maxVolumes } }),
  };
  await host.makeDirectory(stateDir);
  const { cloud, component } =
    services === "node"
      ? joinCloud(env, stateDir, caller, node)
      : await ownCloud(env, options, caller, services === "all" ? [node] : []);
  const topologyKey = options.topologyKey ?? driverKind(driverName).topologyKey;
  const own = createReferenceDriver(
    { ...env, cloud },
    {
      driverName,
      nodeName: nodeId,
      services: services === "all" ? "both" : services,
      // Encoded: a slash in an id must not lead to another directory.
      recordsFile: `${stateDir}/nodes/${encodeURIComponent(nodeId)}.json`,
      ...(options.ephemeral === true
        ? { ephemeralDir: `${stateDir}/ephemeral/${encodeURIComponent(nodeId)}` }
        : {}),
      ...(topologyKey === undefined ? {} : { topologyKey }),
      ...(options.defaultFsType === undefined ? {} : { defaultFsType: options.defaultFsType }),
      faults,
    },
  );
  try {
    const server = await env.listener.serve(options.endpoint, own);
    return { stop: () => stopAll([{ stop: () => server.close() }, component]) };
  } catch (error) {
    await component.stop();
    throw error;
  }
}

interface Cloud {
  readonly cloud: ProviderCloud;
  readonly component: Component;
}

async function ownCloud(
  env: StandaloneDriverEnv,
  options: StandaloneDriverOptions,
  caller: CloudCaller,
  instances: readonly CloudInstance[],
): Promise<Cloud> {
  const { stateDir, zones = ["zone-1"], capacityBytes } = options;
  const room = capacityBytes === undefined ? {} : { zoneCapacityBytes: capacityBytes };
  const cloudOptions = { stateDir, instances, zones, ...room };
  const { service, component } = await startDiskCloud(env, cloudOptions, `${stateDir}/cloud.sock`);
  return { cloud: service.forCaller(caller), component };
}

/** The cloud of another process; the node is registered there as soon as that one answers. */
function joinCloud(
  env: StandaloneDriverEnv,
  stateDir: string,
  caller: CloudCaller,
  node: CloudInstance,
): Cloud {
  const cloud = connectDiskCloud(env, `${stateDir}/cloud.sock`, caller);
  const stopped = new AbortController();
  const register = async () => {
    for (;;) {
      try {
        return await cloud.registerInstance(node, stopped.signal);
      } catch (error) {
        if (stopped.signal.aborted) return;
        env.logger.info("the node is not registered yet: the driver's controller service does not answer", {
          error,
        });
        await env.clock.sleep(registerEveryMs, stopped.signal);
      }
    }
  };
  const registering = register().catch(() => {});
  return {
    cloud,
    component: {
      async stop() {
        stopped.abort(new Error("the driver is stopping"));
        await registering;
        await cloud.close();
      },
    },
  };
}
