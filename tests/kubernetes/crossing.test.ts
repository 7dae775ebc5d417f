/**
 * The demo's crossing and its way back on a real API server: our controllers, scheduler, workloads,
 * node agents (each as its node's own user), driver and sidecars, with real sockets and the real clock.
 */
import { grpcConnector, grpcListener } from "@longshore/csi";
import { type HttpKubeClient, resources } from "@longshore/kube";
import type { GateValues } from "@longshore/migration";
import type { Component, SimulatedHost } from "@longshore/runtime";
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootstrap, nodesReady } from "../../packages/local/src/cluster/process-cluster.ts";
import { startControllerManager } from "../../packages/local/src/components/controller-manager.ts";
import { startCsiDriverController } from "../../packages/local/src/components/csi-driver.ts";
import { inTreePluginsNamed } from "../../packages/local/src/components/in-tree-plugins.ts";
import { readPodLogs } from "../../packages/local/src/containers/read-pod-logs.ts";
import { type DemoCluster, runDemo } from "../../packages/local/src/demo/demo.ts";
import { clusterConfig, initialGates } from "../../packages/local/src/layout/cluster-config.ts";
import { controllerManagerUser } from "../../packages/local/src/layout/grant-control-plane.ts";
import { controlPlane, createEmbeddedPlatform } from "../../packages/local/src/platform/embedded-platform.ts";
import {
  readerProgram,
  recordPrograms,
  writerProgram,
} from "../../packages/local/src/records/in-process-programs.ts";
import {
  type ControlPlane,
  connectAs,
  createTestNode,
  eventually,
  grant,
  nodeUser,
  type Provider,
  realEnv,
  signal,
  startControlPlane,
  startProvider,
  type TestNode,
} from "./support/index.ts";

const config = clusterConfig(2, "unprivileged");
const driverName = "ebs.csi.aws.com";
const driverUser = "system:serviceaccount:kube-system:ebs-csi-controller";

let kubernetes: ControlPlane;
let provider: Provider;
let kube: HttpKubeClient;
let driverKube: HttpKubeClient;
let managerKube: HttpKubeClient;
const managerAccess: AccessLog = { asked: new Set(), refused: [] };
let driver: Component;
let manager: Component | undefined;
const nodes = new Map<string, TestNode>();
const gates = new Map<string, GateValues>();
const gatesOf = (name: string) => gates.get(name) ?? initialGates;

beforeAll(async () => {
  [kubernetes, provider] = await Promise.all([
    startControlPlane({
      featureGates: { CSIMigration: true, CSIMigrationAWS: true },
      users: [
        { name: driverUser },
        { name: controllerManagerUser.name },
        ...config.nodes.map(({ name }) => nodeUser(name)),
      ],
      // It taints new nodes, and no node life-cycle controller runs here that would take the taint off.
      apiServerArgs: ["--disable-admission-plugins=TaintNodesByCondition"],
    }),
    startProvider(config.nodes.map(({ name, ...rest }) => ({ nodeName: name, ...rest }))),
  ]);
  kube = await connectAs(kubernetes);
  await grant(kubernetes, driverUser, "attacher", "provisioner", "resizer");
  driverKube = await connectAs(kubernetes, driverUser);
  managerKube = await connectAs(kubernetes, controllerManagerUser.name);
  await bootstrap(kube, config, signal);
  startManager();
  for (const { name, ...rest } of config.nodes) {
    const node = await createTestNode({
      kubernetes,
      provider,
      machine: { nodeName: name, ...rest },
      driverName,
      // The programs use of a host only what every form of it has.
      programs: recordPrograms(realEnv.clock, provider.host as SimulatedHost),
    });
    nodes.set(name, node);
    await node.startAgent(gatesOf(name));
    await node.startDriver();
  }
  driver = await startCsiDriverController(
    {
      ...realEnv,
      kube: driverKube,
      host: provider.host,
      connector: grpcConnector(realEnv),
      listener: grpcListener(realEnv),
      cloudFor: provider.cloud.forCaller.bind(provider.cloud),
    },
    { driverName, socket: `${provider.directory}/csi.sock` },
  );
  await nodesReady(realEnv, { kube, config }, signal);
});
afterAll(async () => {
  await Promise.all([...nodes.values()].map((node) => node.stop()));
  await manager?.stop();
  await driver?.stop();
  await Promise.all([kube?.close(), driverKube?.close(), managerKube?.close()]);
  await Promise.all([kubernetes?.stop(), provider?.stop()]);
});

function startManager(): void {
  manager = startControllerManager(
    {
      ...realEnv,
      kube: watchedClient(managerKube, managerAccess),
      cloudFor: provider.cloud.forCaller.bind(provider.cloud),
    },
    { gates: gatesOf(controlPlane), identity: controlPlane, inTreePlugins: inTreePluginsNamed(["aws-ebs"]) },
  );
}

async function restart(name: string): Promise<void> {
  if (name !== controlPlane) return nodes.get(name)?.startAgent(gatesOf(name));
  await manager?.stop();
  startManager();
}

test("a StatefulSet's volumes go to CSI and back, and no acknowledged write is lost", async () => {
  const platform = createEmbeddedPlatform({
    clock: realEnv.clock,
    kube,
    control: {
      readGates: async (name) => gatesOf(name),
      writeGates: async (name, values) => void gates.set(name, values),
      restart,
    },
  });
  const cluster: DemoCluster = {
    config,
    kube,
    platform,
    host: provider.host,
    journalFile: () => `${provider.directory}/crossing.json`,
    podLogs: async (podName) => {
      const logs = [...nodes.values()].map(({ logDir }) =>
        readPodLogs(provider.host, logDir, "default", podName),
      );
      return (await Promise.all(logs)).flat();
    },
    cloudCalls: (within) => provider.cloud.calls(0, within),
    cloudAttachments: async () => provider.cloud.disks().flatMap(({ attachments }) => attachments).length,
  };
  const report = await runDemo(
    realEnv,
    cluster,
    {
      replicas: 2,
      writerCommand: [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "20"],
      readerCommand: [readerProgram, "$(LONGSHORE_MOUNT_DATA)"],
      restMs: 300,
    },
    signal,
  );
  expect(report).toMatchObject({ lostWrites: 0, strandedAttachments: 0, inTreeCallsAfterMigration: 0 });
  expect(report.acknowledgedWrites).toBeGreaterThan(30);
  expect(report.volumes.map(({ inTreeHandle }) => inTreeHandle)).toEqual(
    report.volumes.map(({ csiHandle }, i) => `aws://us-east-1${"ab"[i]}/${csiHandle}`),
  );
  // Both ways were gone: the driver attached each disk, and so did the in-tree plugin.
  const calls = await provider.cloud.calls(0, signal);
  for (const path of ["csi", "in-tree"]) {
    const attached = calls.filter((call) => call.op === "attachDisk" && call.path === path);
    expect(new Set(attached.map(({ diskId }) => diskId)).size).toBe(2);
  }
  // Nothing of the migration is left on the volumes.
  await eventually("the volumes carry no mark of the crossing", async () => {
    const { items } = await kube.list(resources.persistentVolumes, { signal });
    return (
      items.length === 2 &&
      items.every(
        ({ metadata }) =>
          metadata.annotations?.["pv.kubernetes.io/migrated-to"] === undefined &&
          !metadata.finalizers?.some((finalizer) => finalizer.startsWith("external-")),
      )
    );
  });
});

test("the agents of the nodes have asked for claims, volumes and attachments by name only", () => {
  for (const { access } of nodes.values()) {
    for (const plural of ["persistentvolumeclaims", "persistentvolumes", "volumeattachments"]) {
      expect(access.asked).not.toContain(`list ${plural}`);
      expect(access.asked).not.toContain(`watch ${plural}`);
    }
    expect(access.asked).toContain("get persistentvolumeclaims");
    expect(access.asked).toContain("get persistentvolumes");
  }
  const asked = [...nodes.values()].flatMap(({ access }) => [...access.asked]);
  expect(asked).toContain("get volumeattachments");
});

test("the controllers, as a user of their own, were refused nothing", () => {
  expect(managerAccess.asked.size).toBeGreaterThan(10);
  expect(managerAccess.refused).toEqual([]);
});
