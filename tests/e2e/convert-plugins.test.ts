/**
 * A volume of every plugin becomes a native one of its driver, and an in-tree one again, by the command and on real devices: no block
 * of a disk differs, no driver is asked to make or delete one, and the writers go on with all that they have acknowledged.
 */
import { join } from "node:path";
import { resources } from "@longshore/kube";
import { clusterPlugin, inTreeHandle, readPodLogs, writerSetName } from "@longshore/local";
import { cloudProviders } from "@longshore/volumes";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DemoWriters } from "../../packages/local/src/demo/demo-writers.ts";
import { readDriverCalls } from "../../packages/local/src/layout/driver-calls.ts";
import { blockSums } from "./support/block-sums.ts";
import { machineStateBelow } from "./support/machine-state.ts";
import { longshore } from "./support/run-command.ts";
import { bestForm, TestCluster, writerScript } from "./support/test-cluster.ts";

const { signal } = new AbortController();
/** Eight plugins start at once on a machine that may be busy. */
const longMs = 300_000;
const readerCommand = ["/bin/cat", "$(LONGSHORE_MOUNT_DATA)/records"];
const writerCommand = [
  process.execPath,
  writerScript,
  "$(LONGSHORE_MOUNT_DATA)",
  "$(POD_NAME)",
  // Milliseconds from one write to the next: many writers share the machine.
  "200",
];

let on: TestCluster;
let writers: readonly DemoWriters[];

beforeAll(async () => {
  // The writers of a share run on two nodes.
  on = await TestCluster.empty(2, bestForm(), { plugins: cloudProviders, recordsDriverCalls: true });
  const { kube, layout } = on.cluster;
  const podLogs = (name: string) => readPodLogs(on.env.host, layout.podLogDir, "default", name);
  writers = cloudProviders.map(
    (plugin) =>
      new DemoWriters(
        { clock: on.env.clock, kube, podLogs },
        { plugin, replicas: 1, writerCommand, readerCommand },
      ),
  );
}, longMs);
afterAll(() => on?.down(), longMs);

const all = async (holds: (of: DemoWriters) => Promise<boolean>) =>
  (await Promise.all(writers.map(holds))).every((each) => each);
const acknowledged = async () => (await Promise.all(writers.map((of) => of.acknowledged()))).flat();

/** Every writer runs, and acknowledges something more. */
async function writersGoOn(): Promise<void> {
  await on.until("every writer runs", () => all((of) => of.areReady(signal)), longMs);
  const before = await acknowledged();
  await on.until(
    "every writer writes",
    async () => (await acknowledged()).every((count, at) => count > (before[at] ?? 0)),
    longMs,
  );
}

async function startWriters(): Promise<void> {
  for (const plugin of cloudProviders) {
    const ref = { namespace: "default", name: writerSetName(plugin) };
    // Those of a share are two.
    const body = { spec: { replicas: clusterPlugin(plugin).isShared ? 2 : 1 } };
    await on.cluster.kube.patch(resources.statefulSets, ref, { type: "merge", body }, { signal });
  }
  await writersGoOn();
}

/** No pod, nothing attached in the API, at the providers or on the machine: the blocks of the disks are at rest. */
async function stopWriters(): Promise<void> {
  const { kube } = on.cluster;
  for (const of of writers) await of.stop(signal);
  await on.until(
    "nothing is attached",
    async () => {
      const nodes = (await kube.list(resources.nodes, { signal })).items;
      const lists = [
        (await kube.list(resources.pods, { signal })).items,
        (await kube.list(resources.volumeAttachments, { signal })).items,
        nodes.flatMap(({ status }) => [...(status?.volumesAttached ?? []), ...(status?.volumesInUse ?? [])]),
        (await disks()).flatMap(({ attachments }) => attachments),
      ];
      // The machine is asked last, since that takes a program.
      return (
        lists.every(({ length }) => length === 0) &&
        machineStateBelow(on.cluster.layout.dir).loopDevices.length === 0
      );
    },
    longMs,
  );
}

async function disks() {
  const lists = await Promise.all(cloudProviders.map((name) => on.cluster.cloudOf(name).listDisks(signal)));
  return lists.flat();
}

/** What must be the same before and after. */
async function ground() {
  const { kube, layout } = on.cluster;
  const claims = (await kube.list(resources.persistentVolumeClaims, { signal })).items;
  return {
    disks: (await disks()).map(({ id }) => id).sort(),
    claims: claims.map(({ metadata, status }) => `${metadata.name} ${status?.phase}`).sort(),
    blocks: {
      ...blockSums(join(layout.cloudDir, "disks")),
      ...blockSums(join(layout.cloudDir, "shares")),
    },
  };
}

async function volumes() {
  return (await on.cluster.kube.list(resources.persistentVolumes, { signal })).items;
}

/** What the drivers were asked for so far. */
async function driverCalls() {
  const { layout, config } = on.cluster;
  const places = ["controller", ...config.nodes.map(({ name }) => name)];
  return readDriverCalls(on.env.host, places.map(layout.driverCallsFile));
}

/** Disks that the providers were asked to make or to delete, by in-tree code or a driver. */
async function madeOrDeleted(): Promise<readonly string[]> {
  const calls = await on.cluster.cloud.calls(0, signal);
  return calls.map(({ op }) => op).filter((op) => op === "createDisk" || op === "deleteDisk");
}

/** Runs a verb on every volume; returns its result. */
async function carry(verb: "run" | "undo") {
  const words = ["--dir", on.cluster.layout.dir, "--all", "--parallel", "4", "--json"];
  const { code, out, err } = await longshore("convert", verb, ...words);
  expect(code, `${out}\n${err}`).toBe(0);
  return JSON.parse(out.trim().split("\n").at(-1) ?? "") as {
    readonly converted: readonly object[];
    readonly failed: readonly object[];
  };
}

test("volumes of all plugins are converted and undone on the same blocks, and the writers go on", {
  timeout: 2 * longMs,
}, async () => {
  await Promise.all(writers.map((of) => of.start(signal)));
  await writersGoOn();
  await stopWriters();
  const handles = (await volumes()).map(({ spec }) => inTreeHandle(spec) ?? "none").sort();
  expect(handles).toHaveLength(cloudProviders.length);
  expect(handles).not.toContain("none");
  const made = await madeOrDeleted();
  expect(made).toEqual(cloudProviders.map(() => "createDisk"));

  const before = await ground();
  const images = Object.values(before.blocks);
  expect(images.length).toBeGreaterThanOrEqual(cloudProviders.length);
  expect(images.every((sums) => Object.keys(sums).length > 0)).toBe(true);
  const converted = await carry("run");
  expect(converted).toMatchObject({ failed: [] });
  expect(converted.converted).toHaveLength(cloudProviders.length);
  expect(await ground()).toEqual(before);
  const sources = (await volumes()).map(({ spec }) => spec?.csi);
  expect(new Set(sources.map((csi) => csi?.driver ?? "in-tree"))).toEqual(
    new Set(cloudProviders.map((name) => clusterPlugin(name).driverName)),
  );

  await startWriters();
  // The record of the drivers' calls is one: it has those by which the writers' volumes were mounted.
  const mounted = (await driverCalls()).filter(({ rpc }) => rpc === "NodePublishVolume");
  expect(new Set(mounted.map(({ volumeId }) => volumeId))).toEqual(
    new Set(sources.map((csi) => csi?.volumeHandle)),
  );

  await stopWriters();
  const between = await ground();
  const undone = await carry("undo");
  expect(undone).toMatchObject({ failed: [] });
  expect(undone.converted).toHaveLength(cloudProviders.length);
  expect(await ground()).toEqual(between);
  expect(between.disks).toEqual(before.disks);
  expect(between.claims).toEqual(before.claims);
  expect((await volumes()).map(({ spec }) => inTreeHandle(spec) ?? "none").sort()).toEqual(handles);
  await startWriters();

  await stopWriters();
  const checked = (await Promise.all(writers.map((of) => of.check(signal)))).flat();
  expect(checked.map(({ plugin, lost }) => ({ plugin, lost }))).toEqual(
    checked.map(({ plugin }) => ({ plugin, lost: 0 })),
  );
  expect(new Set(checked.map(({ plugin }) => plugin))).toEqual(new Set(cloudProviders));
  expect(checked.every((each) => each.acknowledged > 0)).toBe(true);
  expect(await madeOrDeleted()).toEqual(made);
  const rpcs = (await driverCalls()).map(({ rpc }) => rpc);
  expect(rpcs.filter((rpc) => rpc === "CreateVolume" || rpc === "DeleteVolume")).toEqual([]);
});
