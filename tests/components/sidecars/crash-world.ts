/**
 * A cluster without controllers, a provider and the reference driver in one process under a virtual clock, in which a
 * work cycle runs. Server, provider and driver are the real ones. Driver and provider outlive the sidecar that is killed.
 */
import { fileURLToPath } from "node:url";
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import { type CsiServices, type InProcessCsi, inProcessCsi } from "@longshore/csi";
import { resources } from "@longshore/kube";
import { createDiskCloud, createReferenceDriver } from "@longshore/reference-driver";
import {
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import type { SidecarEnv } from "@longshore/sidecars";
import { snapshotCrdsUrl } from "@longshore/storage";
import type { CycleWorld } from "./work-cycles.ts";

const socket = "/csi/csi.sock";
const driverName = "ebs.csi.aws.com";
const zone = "us-east-1a";

/** The world, with the seams for its sidecar. */
export interface CrashWorld extends CycleWorld {
  readonly clock: VirtualClock;
  readonly csi: InProcessCsi;
  readonly socket: string;
  env(): SidecarEnv;
  /** Serves the driver (again). */
  serveDriver(): Promise<void>;
}

/** What kind of world it is. */
export interface CrashWorldOptions {
  /** Log and meter of everything in it. */
  readonly watch?: Partial<Pick<RuntimeEnv, "logger" | "meter">>;
  /** What is served in the place of the driver's services. */
  readonly extend?: (services: CsiServices) => CsiServices;
}

/** Makes one. */
export async function crashWorld({
  watch,
  extend = (services) => services,
}: CrashWorldOptions = {}): Promise<CrashWorld> {
  const clock = new VirtualClock();
  const random = new SeededRandom(7);
  const runtime: RuntimeEnv = { clock, random, logger: silentLogger, meter: noMeter, ...watch };
  const signal = new AbortController().signal;
  const definitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  const server = createApiServer(runtime, { store: memoryStore(), definitions });
  const kube = server.client();
  const host = new SimulatedHost();
  const nodes = ["node-a", "node-b"].map((nodeName) => ({ nodeName, instanceId: `i-${nodeName}` }));
  const instances = nodes.map((node) => ({ ...node, zone, region: "us-east-1", attachLimit: 25 }));
  const provider = await clock.run(createDiskCloud({ ...runtime, host }, { stateDir: "/cloud", instances }));
  const operator = provider.forCaller({ path: "in-tree", component: "test" });
  const csi = inProcessCsi({ clock });
  const cloud = provider.forCaller({ path: "csi", component: driverName });
  const serveDriver = async () => {
    const services = createReferenceDriver(
      { ...runtime, host, cloud },
      { driverName, services: "both", nodeName: "node-a" },
    );
    await csi.serve(socket, extend(services));
  };
  await serveDriver();
  for (const { nodeName, instanceId } of nodes) {
    const labels = { "topology.ebs.csi.aws.com/zone": zone };
    await kube.create(resources.nodes, { metadata: { name: nodeName, labels } }, { signal });
    const topologyKeys = Object.keys(labels);
    const drivers = [{ name: driverName, nodeID: instanceId, topologyKeys }];
    await kube.create(resources.csiNodes, { metadata: { name: nodeName }, spec: { drivers } }, { signal });
  }
  return {
    clock,
    kube,
    csi,
    socket,
    signal,
    driverName,
    zone,
    nodes,
    disks: () => provider.disks(),
    snapshots: async () => (await clock.run(operator.listSnapshots(signal))).map(({ id }) => id),
    async makeDisk(name) {
      const request = { name, zone, sizeBytes: 2n ** 30n, type: "gp2", tags: {} };
      return (await clock.run(operator.createDisk(request, signal))).id;
    },
    deleteDisk: (id) => clock.run(operator.deleteDisk(id, signal)),
    env: () => ({ ...runtime, kube, csi: csi.connect(socket) }),
    serveDriver,
    async eventually(what, condition) {
      const untilMs = clock.monotonicMs() + 60 * 60_000;
      for (;;) {
        await clock.settle();
        const found = await condition();
        if (found !== undefined && found !== false) return found;
        if (clock.monotonicMs() >= untilMs) throw new Error(`not within an hour: ${what}`);
        await clock.advance(250);
      }
    },
  };
}
