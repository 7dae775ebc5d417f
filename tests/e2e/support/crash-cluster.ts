/** What a sidecar that is killed works with: an API server over HTTPS, a provider, and the reference driver over gRPC. */
import { setMaxListeners } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { grpcListener } from "@longshore/csi";
import { type KubeClient, resources } from "@longshore/kube";
import { systemClock, unprivilegedHost } from "@longshore/runtime";
import { snapshotCrdsUrl } from "@longshore/storage";
import { readDefinitions } from "../../../packages/apiserver/src/index.ts";
import { adminToken, realEnv, serveForTest } from "../../../packages/apiserver/src/testing/serve.ts";
import { createDiskCloud } from "../../../packages/reference-driver/src/disk-cloud/index.ts";
import { createReferenceDriver } from "../../../packages/reference-driver/src/driver/index.ts";
import type { CycleWorld } from "../../components/sidecars/work-cycles.ts";
import type { Surroundings } from "./mortal-program.ts";

/** The world of a cycle, with what a process needs to find it. */
export interface CrashCluster extends CycleWorld {
  readonly kube: KubeClient;
  readonly surroundings: Omit<Surroundings, "sidecar">;
  stop(): Promise<void>;
}

const driverName = "ebs.csi.aws.com";
const zone = "us-east-1a";
const withinMs = 60_000;
const pollMs = 10;

/** Starts one. */
export async function startCrashCluster(): Promise<CrashCluster> {
  const directory = await mkdtemp("/tmp/ls-crash-");
  const end = new AbortController();
  const { signal } = end;
  setMaxListeners(0, signal);
  const definitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  const served = await serveForTest({ definitions });
  const kube = served.server.client();
  const host = unprivilegedHost();
  const nodes = ["node-a", "node-b"].map((nodeName) => ({ nodeName, instanceId: `i-${nodeName}` }));
  const instances = nodes.map((node) => ({ ...node, zone, region: "us-east-1", attachLimit: 25 }));
  const provider = await createDiskCloud({ ...realEnv, host }, { stateDir: `${directory}/cloud`, instances });
  const operator = provider.forCaller({ path: "in-tree", component: "test" });
  const cloud = provider.forCaller({ path: "csi", component: driverName });
  const services = createReferenceDriver(
    { ...realEnv, host, cloud },
    { driverName, services: "both", nodeName: "node-a" },
  );
  const socket = `${directory}/csi.sock`;
  const driver = await grpcListener(realEnv).serve(socket, services);
  for (const { nodeName, instanceId } of nodes) {
    const labels = { "topology.ebs.csi.aws.com/zone": zone };
    await kube.create(resources.nodes, { metadata: { name: nodeName, labels } }, { signal });
    const topologyKeys = Object.keys(labels);
    const drivers = [{ name: driverName, nodeID: instanceId, topologyKeys }];
    await kube.create(resources.csiNodes, { metadata: { name: nodeName }, spec: { drivers } }, { signal });
  }
  return {
    kube,
    signal,
    driverName,
    zone,
    nodes,
    surroundings: { server: served.front.url, ca: served.authority.certificate, token: adminToken, socket },
    disks: () => provider.disks(),
    snapshots: async () => (await operator.listSnapshots(signal)).map(({ id }) => id),
    async makeDisk(name) {
      const request = { name, zone, sizeBytes: 2n ** 30n, type: "gp2", tags: {} };
      return (await operator.createDisk(request, signal)).id;
    },
    deleteDisk: (id) => operator.deleteDisk(id, signal),
    async eventually(what, condition) {
      const untilMs = systemClock.monotonicMs() + withinMs;
      for (;;) {
        const found = await condition();
        if (found !== undefined && found !== false) return found;
        if (systemClock.monotonicMs() >= untilMs) throw new Error(`not within a minute: ${what}`);
        await systemClock.sleep(pollMs, signal);
      }
    },
    async stop() {
      end.abort();
      await driver.close();
      await provider.stop();
      await served.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
