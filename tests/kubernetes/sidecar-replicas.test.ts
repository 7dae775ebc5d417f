/**
 * Two processes of the sidecars against the real API server, with the reference's durations and no more than the
 * reference's rights: the one that is stopped for a minute wakes, writes nothing and steps down.
 */
import { readFileSync } from "node:fs";
import { type CsiServer, grpcListener } from "@longshore/csi";
import { type HttpKubeClient, resources } from "@longshore/kube";
import { systemClock } from "@longshore/runtime";
import { leaseName } from "@longshore/storage";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createReferenceDriver } from "../../packages/reference-driver/src/driver/index.ts";
import { type CycleWorld, workCycles } from "../components/sidecars/work-cycles.ts";
import { SidecarReplica } from "../e2e/support/sidecar-replica.ts";
import {
  bindRole,
  type ControlPlane,
  connectAs,
  eventually,
  grant,
  machine,
  type Provider,
  realEnv,
  signal,
  startControlPlane,
  startProvider,
  zone,
} from "./support/index.ts";

const driverName = "ebs.csi.aws.com";
const user = "system:serviceaccount:kube-system:ebs-csi-controller";
const namespace = "kube-system";
const machines = [machine("node-1"), machine("node-2")];

let kubernetes: ControlPlane;
let provider: Provider;
let kube: HttpKubeClient;
let driver: CsiServer;
const replicas: SidecarReplica[] = [];

beforeAll(async () => {
  [kubernetes, provider] = await Promise.all([
    startControlPlane({
      featureGates: { CSIMigration: true, CSIMigrationAWS: true },
      users: [{ name: user }],
    }),
    startProvider(machines),
  ]);
  kube = await connectAs(kubernetes);
  await grant(kubernetes, user, "attacher", "provisioner", "resizer");
  const leases = {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    verbs: ["get", "create", "update"],
  };
  const role = { metadata: { name: "leases" }, rules: [leases] };
  expect(
    (await kubernetes.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)).status,
  ).toBe(201);
  await bindRole(kubernetes, user, "leases");
  const cloud = provider.cloud.forCaller({ path: "csi", component: driverName });
  const services = createReferenceDriver(
    { ...realEnv, host: provider.host, cloud },
    { driverName, services: "controller" },
  );
  driver = await grpcListener(realEnv).serve(`${provider.directory}/csi.sock`, services);
  for (const { nodeName, instanceId } of machines) {
    const labels = { "topology.ebs.csi.aws.com/zone": zone };
    await kube.create(resources.nodes, { metadata: { name: nodeName, labels } }, { signal });
    const drivers = [{ name: driverName, nodeID: instanceId, topologyKeys: Object.keys(labels) }];
    await kube.create(resources.csiNodes, { metadata: { name: nodeName }, spec: { drivers } }, { signal });
  }
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.stop()));
  await driver?.close();
  await kube?.close();
  await Promise.all([kubernetes?.stop(), provider?.stop()]);
});

async function start(identity: string): Promise<SidecarReplica> {
  const surroundings = {
    server: kubernetes.url,
    ca: readFileSync(kubernetes.caPath, "utf8"),
    token: kubernetes.tokens[user] ?? "",
    socket: `${provider.directory}/csi.sock`,
  };
  const argv = ["sidecars", "--leader-election", `--leader-election-namespace=${namespace}`];
  const replica = await SidecarReplica.start(identity, provider.directory, surroundings, argv);
  replicas.push(replica);
  return replica;
}

const holders = async () => {
  const names = (["attacher", "provisioner"] as const).map((sidecar) => leaseName(sidecar, driverName));
  const leases = await Promise.all(
    names.map((name) => kube.get(resources.leases, { name, namespace }, { signal })),
  );
  return leases.map((lease) => lease?.spec?.holderIdentity);
};

/** Attaches a volume to one node after the other, and deletes it. */
function attachCycle(id: string): Promise<void> {
  const operator = provider.cloud.forCaller({ path: "in-tree", component: "test" });
  const world: CycleWorld = {
    kube,
    signal,
    driverName,
    zone,
    nodes: machines,
    disks: () => provider.cloud.disks(),
    snapshots: async () => [],
    makeDisk: (name) => provider.makeDisk(name),
    deleteDisk: (disk) => operator.deleteDisk(disk, signal),
    eventually: (what, condition) => eventually(what, condition),
  };
  return workCycles.attacher(world, id);
}

test("stopped for a minute, it wakes, writes nothing and steps down", { timeout: 240_000 }, async () => {
  const first = await start("first");
  await eventually("the first leads", async () => (await holders()).every((holder) => holder === "first"));
  const second = await start("second");
  await attachCycle("a");
  expect(second.writesSince(0)).toEqual([]);
  const working = attachCycle("b");
  const before = first.writesSince(0).length;
  await eventually("in the midst of it", async () => first.writesSince(0).length > before);
  first.signal("SIGSTOP");
  const stoppedMs = systemClock.monotonicMs();
  await working;
  expect(await holders()).toContain("second");
  await systemClock.sleep(60_000 - (systemClock.monotonicMs() - stoppedMs), signal);
  const more = attachCycle("c");
  const wokenMs = systemClock.monotonicMs();
  first.signal("SIGCONT");
  await eventually("it steps down", async () => first.log.includes("leadership ended"));
  await more;
  await attachCycle("d");
  expect(first.writesSince(wokenMs)).toEqual([]);
  expect(await holders()).toEqual(["second", "second"]);
});
