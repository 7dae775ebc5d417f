/**
 * The node agent and the registrar: what is written into Node and CSINode when a driver registers over
 * real sockets, as the real API server stores it, within the rights of a node.
 */
import { existsSync } from "node:fs";
import { type HttpKubeClient, resources } from "@longshore/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type ControlPlane,
  connectAs,
  createTestNode,
  eventually,
  machine,
  nodeUser,
  type Provider,
  record,
  signal,
  startControlPlane,
  startProvider,
  type TestNode,
  zone,
} from "./support/index.ts";

const driverName = "ebs.csi.aws.com";
const topologyKey = "topology.ebs.csi.aws.com/zone";
const migratedPlugins = "storage.alpha.kubernetes.io/migrated-plugins";
const gatesOn = { CSIMigration: true, CSIMigrationAWS: true };
const gatesOff = { CSIMigration: true, CSIMigrationAWS: false };
const one = machine("node-1");
const two = machine("node-2");

let kubernetes: ControlPlane;
let provider: Provider;
let kube: HttpKubeClient;
let node1: TestNode;
let node2: TestNode;

beforeAll(async () => {
  [kubernetes, provider] = await Promise.all([
    startControlPlane({ users: [nodeUser(one.nodeName), nodeUser(two.nodeName)] }),
    startProvider([one, two]),
  ]);
  kube = await connectAs(kubernetes);
  const common = { kubernetes, provider, driverName };
  node1 = await createTestNode({ ...common, machine: one });
  node2 = await createTestNode({ ...common, machine: two });
});
afterAll(async () => {
  await Promise.all([node1?.stop(), node2?.stop()]);
  await kube?.close();
  await Promise.all([kubernetes?.stop(), provider?.stop()]);
});

const nodeOf = async (name: string) => await kube.get(resources.nodes, { name }, { signal });
const csiNodeOf = async (name: string) => await kube.get(resources.csiNodes, { name }, { signal });
const isReady = (node: Awaited<ReturnType<typeof nodeOf>>) =>
  node?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
const ready = (name: string) =>
  eventually(`${name} is Ready`, async () => {
    const node = await nodeOf(name);
    return isReady(node) && node;
  });
const withDriver = (name: string) =>
  eventually(`the CSINode of ${name} names the driver`, async () => {
    const csiNode = await csiNodeOf(name);
    return csiNode?.spec.drivers?.some((driver) => driver.name === driverName) && csiNode;
  });

test("the migrated plugins are in the CSINode before the node turns Ready", async () => {
  const history = await record(kube, resources.nodes);
  await node1.startAgent(gatesOn);
  const node = await ready(one.nodeName);
  const csiNode = await csiNodeOf(one.nodeName);
  expect(csiNode?.metadata.annotations?.[migratedPlugins]).toBe("kubernetes.io/aws-ebs");
  expect(csiNode?.spec.drivers ?? []).toEqual([]);
  expect(csiNode?.metadata.ownerReferences).toEqual([
    { apiVersion: "v1", kind: "Node", name: one.nodeName, uid: node.metadata.uid },
  ]);
  const readyAt = await history.versionWhen(isReady);
  expect(readyAt).toBeGreaterThan(Number(csiNode?.metadata.resourceVersion));
  expect(history.states.map(isReady)[0]).toBe(false);
  await history.stop();
});

test("a driver that registers is in CSINode and Node", async () => {
  await node1.startDriver();
  const csiNode = await withDriver(one.nodeName);
  expect(csiNode.spec.drivers).toEqual([
    {
      name: driverName,
      nodeID: one.instanceId,
      topologyKeys: [topologyKey],
      allocatable: { count: 25 },
    },
  ]);
  expect(csiNode.metadata.annotations?.[migratedPlugins]).toBe("kubernetes.io/aws-ebs");
  const node = await nodeOf(one.nodeName);
  expect(node?.metadata.labels).toMatchObject({ [topologyKey]: zone, "topology.kubernetes.io/zone": zone });
  expect(JSON.parse(node?.metadata.annotations?.["csi.volume.kubernetes.io/nodeid"] ?? "")).toEqual({
    [driverName]: one.instanceId,
  });
  expect(existsSync(node1.registrationSocket)).toBe(true);
});

test("an agent that starts again finds the driver by its socket and writes nothing again", async () => {
  const before = await csiNodeOf(one.nodeName);
  await node1.startAgent(gatesOn);
  await eventually("the registrar is notified again", async () => node1.registrations.length === 2);
  expect(node1.registrations).toEqual([true, true]);
  const after = await csiNodeOf(one.nodeName);
  expect(after?.spec).toEqual(before?.spec);
  expect(after?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
});

test("a driver that goes leaves CSINode and Node, but its labels", async () => {
  await node1.stopDriver();
  await eventually("the CSINode names no driver", async () => {
    const csiNode = await csiNodeOf(one.nodeName);
    return (csiNode?.spec.drivers ?? []).length === 0;
  });
  await eventually("the node's id is taken off the Node", async () => {
    const node = await nodeOf(one.nodeName);
    return node?.metadata.annotations?.["csi.volume.kubernetes.io/nodeid"] === undefined;
  });
  expect(existsSync(node1.registrationSocket)).toBe(false);
  const node = await nodeOf(one.nodeName);
  expect(node?.metadata.labels).toMatchObject({ [topologyKey]: zone });
  expect((await csiNodeOf(one.nodeName))?.metadata.annotations?.[migratedPlugins]).toBe(
    "kubernetes.io/aws-ebs",
  );
});

test("without the gate there is no annotation; switched, it comes and goes", async () => {
  await node2.startAgent(gatesOff);
  await ready(two.nodeName);
  await node2.startDriver();
  const csiNode = await withDriver(two.nodeName);
  expect(csiNode.metadata.annotations?.[migratedPlugins]).toBeUndefined();
  expect(csiNode.spec.drivers).toMatchObject([{ nodeID: two.instanceId }]);

  await node2.startAgent(gatesOn);
  await eventually("the plugin is listed", async () => {
    const now = await csiNodeOf(two.nodeName);
    return now?.metadata.annotations?.[migratedPlugins] === "kubernetes.io/aws-ebs";
  });
  await node2.startAgent(gatesOff);
  await eventually("the plugin is not listed", async () => {
    const now = await csiNodeOf(two.nodeName);
    return now?.metadata.annotations?.[migratedPlugins] === undefined;
  });
  expect((await withDriver(two.nodeName)).spec.drivers).toMatchObject([{ nodeID: two.instanceId }]);
});

test("a driver registers although the API server was away meanwhile", async () => {
  const restarted = kubernetes.restartApiServer();
  const driver = await node1.startDriver();
  await restarted;
  // A kubelet that could not register a driver says so; the registrar's process then ends and starts again.
  const outcome = await Promise.race([withDriver(one.nodeName), driver.failed]);
  if (outcome instanceof Error) {
    await node1.stopDriver();
    await node1.startDriver();
  }
  expect((await withDriver(one.nodeName)).spec.drivers).toMatchObject([{ nodeID: one.instanceId }]);
});
