/**
 * The test plan of OpenShift's enhancement on real processes: the set CSIMigration is enabled and disabled through the FeatureGate,
 * volumes of in-tree classes are used before, between and after, and the drivers' own call logs say who served them. A StatefulSet
 * writes all the while. Each side is once the first to restart, in both directions (docs/behaviour/migration-controllers.md B2, B4).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { resources } from "@longshore/kube";
import { claimVolume, clusterPlugins, type PluginName, volumePod } from "@longshore/local";
import { migratedPluginsOf } from "@longshore/migration";
import { clusterOperatorName, clusterOperators, featureGateObjects } from "@longshore/migration/openshift";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readDriverCalls } from "../../packages/local/src/layout/driver-calls.ts";
import { OpenshiftOperators } from "./support/openshift-operators.ts";
import { bestForm, longshoreCommand, TestCluster } from "./support/test-cluster.ts";

const never = new AbortController().signal;
const namespace = "default";
/** The plugins of the tech preview of 4.8. */
const plugins: readonly PluginName[] = ["aws-ebs", "cinder"];
const on = { CSIMigrationAWS: true, CSIMigrationOpenStack: true };
const off = { CSIMigrationAWS: false, CSIMigrationOpenStack: false };

let cluster: TestCluster;
let platform: OpenshiftOperators;
let operator: ChildProcess;
let tests = 0;

beforeAll(async () => {
  cluster = await TestCluster.empty(2, bestForm(), {
    plugins,
    nodeDecidesMigration: true,
    recordsDriverCalls: true,
  });
  await cluster.startWriter();
  platform = await OpenshiftOperators.start(cluster, plugins);
  operator = startOperator();
}, 120_000);

afterAll(async () => {
  await platform?.stop();
  operator?.kill("SIGKILL");
  await cluster?.down();
}, 120_000);

function startOperator(): ChildProcess {
  const [program = "", ...first] = longshoreCommand;
  const { kubeconfig } = cluster.cluster.layout;
  const flags = [`--kubeconfig=${kubeconfig}`, "--kubernetes=1.20"];
  return spawn(program, [...first, "run", "feature-gate-operator", ...flags], { stdio: "ignore" });
}

async function select(featureSet: string): Promise<void> {
  const present = await cluster.kube.get(featureGateObjects, { name: "cluster" }, { signal: never });
  const spec = { featureSet };
  if (present !== undefined) {
    await cluster.kube.update(featureGateObjects, { ...present, spec }, { signal: never });
  } else {
    await cluster.kube.create(featureGateObjects, { metadata: { name: "cluster" }, spec }, { signal: never });
  }
}

/** Conditions that are not as in quiet times. */
async function conditions(): Promise<readonly string[]> {
  const found = await cluster.kube.get(clusterOperators, { name: clusterOperatorName }, { signal: never });
  return (found?.status?.conditions ?? [{ type: "Available", reason: "Unknown" }])
    .filter(({ reason }) => reason !== "AsExpected")
    .map(({ type, reason }) => `${type} ${reason}`);
}

/** Plugins that the nodes state as migrated. */
async function stated(): Promise<readonly (readonly string[])[]> {
  const { items } = await cluster.kube.list(resources.csiNodes, { signal: never });
  return items.map((csiNode) => migratedPluginsOf(csiNode).sort());
}

/** What the drivers have answered so far, by their own logs, in the order of time. */
async function driverCalls(): Promise<readonly string[]> {
  const { layout } = cluster.cluster;
  const files = ["controller", "node-1", "node-2"].map((place) => layout.driverCallsFile(place));
  return (await readDriverCalls(cluster.env.host, files)).map(({ rpc }) => rpc);
}

/** A volume of the plugin's in-tree class is made, written, grown, read by another pod, and removed. */
async function useVolume(plugin: PluginName): Promise<void> {
  const { kube } = cluster;
  const classes = clusterPlugins.find(({ name }) => name === plugin)?.classes ?? [];
  const claimName = `data-${plugin}-${++tests}`;
  const spec = {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "32Mi" } },
    storageClassName: classes[0]?.metadata?.name ?? "",
  };
  const claim = { metadata: { name: claimName, namespace }, spec };
  await kube.create(resources.persistentVolumeClaims, claim, { signal: never });
  const runs = async (step: string, script: string) => {
    const name = `${claimName}-${step}`;
    const command = ["/bin/sh", "-ec", script.replaceAll("$FILE", "$(LONGSHORE_MOUNT_DATA)/file")];
    const pod = volumePod({ name, command, volume: claimVolume(claimName) });
    await kube.create(resources.pods, pod, { signal: never });
    const phase = async () => (await cluster.pod(name))?.status?.phase;
    await cluster.until(`${name} ends`, async () => ["Succeeded", "Failed"].includes((await phase()) ?? ""));
    expect([name, await phase()]).toEqual([name, "Succeeded"]);
    await kube.delete(resources.pods, { namespace, name }, { signal: never });
    await cluster.until(`${name} is gone`, async () => (await cluster.pod(name)) === undefined);
  };
  await runs("writes", `echo ${claimName} > "$FILE"`);
  const body = { spec: { resources: { requests: { storage: "2Gi" } } } };
  const ref = { namespace, name: claimName };
  await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal: never });
  const bound = await kube.get(resources.persistentVolumeClaims, ref, { signal: never });
  const volume = { name: bound?.spec?.volumeName ?? "" };
  await cluster.until(`the disk of ${claimName} has grown`, async () => {
    const grown = await kube.get(resources.persistentVolumes, volume, { signal: never });
    return grown?.spec?.capacity?.storage === "2Gi";
  });
  // Its file system grows with the next pod.
  await runs("reads", `test "$(cat "$FILE")" = ${claimName}`);
  await cluster.until(`${claimName} has grown`, async () => {
    const grown = await kube.get(resources.persistentVolumeClaims, ref, { signal: never });
    return grown?.status?.capacity?.storage === "2Gi";
  });
  await kube.delete(resources.persistentVolumeClaims, ref, { signal: never });
  await cluster.until("the volume is removed", async () => {
    return (await kube.get(resources.persistentVolumes, volume, { signal: never })) === undefined;
  });
}

/** Uses a volume of each plugin. @returns who asked the provider meanwhile, and which calls changed volumes in the drivers */
async function useVolumes(): Promise<{
  readonly paths: readonly string[];
  readonly rpcs: readonly string[];
}> {
  const [cloudBefore, driversBefore] = [await cluster.lastCloudCall(), (await driverCalls()).length];
  for (const plugin of plugins) await useVolume(plugin);
  const calls = await cluster.cluster.cloud.calls(cloudBefore, never);
  const changes = calls.filter(({ op }) => /^(create|attach|detach|expand|delete)Disk$/.test(op));
  const paths = new Set(changes.map(({ path, provider = "aws-ebs" }) => `${provider} ${path}`));
  const rpcs = (await driverCalls()).slice(driversBefore);
  return { paths: [...paths].sort(), rpcs: [...new Set(rpcs.filter((rpc) => /Volume$/.test(rpc)))].sort() };
}

const inTree = { paths: ["aws-ebs in-tree", "cinder in-tree"], rpcs: [] };
const byCsi = {
  paths: ["aws-ebs csi", "cinder csi"],
  rpcs: expect.arrayContaining([
    "ControllerExpandVolume",
    "ControllerPublishVolume",
    "ControllerUnpublishVolume",
    "CreateVolume",
    "DeleteVolume",
    "NodePublishVolume",
    "NodeStageVolume",
    "NodeUnpublishVolume",
    "NodeUnstageVolume",
  ]),
};

async function settledWith(isOn: boolean): Promise<void> {
  for (const side of ["control plane", "nodes"] as const) await platform.runsWith(side, isOn ? on : off);
  await cluster.until("the operator is at rest", async () => (await conditions()).length === 0);
  const listed = isOn ? ["kubernetes.io/aws-ebs", "kubernetes.io/cinder"] : [];
  expect(await stated()).toEqual([listed, listed]);
}

test("before: volumes are served in-tree", { timeout: 120_000 }, async () => {
  await cluster.until("the operator reports", async () => (await conditions()).length === 0);
  expect(await useVolumes()).toEqual(inTree);
});

describe.each([
  ["control plane", "nodes"],
  ["nodes", "control plane"],
] as const)("the %s first", (first, second) => {
  test("enabled: volumes are served by the drivers, and the writer goes on", {
    timeout: 300_000,
  }, async () => {
    platform.hold(second);
    await select("CSIMigration");
    await platform.runsWith(first, on);
    operator.kill("SIGKILL");
    expect(await conditions()).toEqual(["Progressing RollingOut"]);
    operator = startOperator();
    platform.release(second);
    await settledWith(true);
    await cluster.writerRuns();
    expect(await useVolumes()).toEqual(byCsi);
  });

  test("disabled: volumes are served in-tree again, and the writer goes on", {
    timeout: 300_000,
  }, async () => {
    platform.hold(second);
    await select("");
    await platform.runsWith(first, off);
    platform.release(second);
    await settledWith(false);
    await cluster.writerRuns();
    expect(await useVolumes()).toEqual(inTree);
  });
});

test("every record that the StatefulSet has acknowledged is there", { timeout: 120_000 }, async () => {
  await cluster.expectNothingLost();
});
