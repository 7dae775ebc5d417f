/**
 * Each fault is noticed by someone who makes many calls: the same calls go to a driver without faults and to
 * one with each, and the answers differ.
 */
import {
  type CsiConnection,
  inProcessCsi,
  type MessageInitShape,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapabilitySchema,
} from "@longshore/csi";
import { SimulatedHost, VirtualClock } from "@longshore/runtime";
import { describe, expect, test } from "vitest";
import { csi, gibibyte, instance, never, openCloud, testEnv } from "../../testing/cloud-fixture.ts";
import { createReferenceDriver } from "../reference-driver.ts";
import { type FaultName, faultDescriptions, faultNames, isFaultName } from "./index.ts";

const call = { signal: never, timeoutMs: 20_000 };
const key = "topology.ebs.csi.aws.com/zone";
const here = [{ segments: { [key]: "us-east-1a" } }];
type Capability = MessageInitShape<typeof VolumeCapabilitySchema>;
const mode = (value: Mode): Capability => ({
  accessType: { case: "mount", value: {} },
  accessMode: { mode: value },
});
const mounted = mode(Mode.SINGLE_NODE_MULTI_WRITER);
const single = mode(Mode.SINGLE_NODE_SINGLE_WRITER);
const many = mode(Mode.MULTI_NODE_MULTI_WRITER);
const block: Capability = {
  accessType: { case: "block", value: {} },
  accessMode: { mode: Mode.SINGLE_NODE_MULTI_WRITER },
};

/** The calls. Each answer (or code and message) is one line. */
async function answersOf(faults: readonly FaultName[]): Promise<readonly string[]> {
  const host = new SimulatedHost();
  const clock = new VirtualClock();
  const env = testEnv(clock);
  const service = await openCloud(host, "/cloud", { env });
  const hub = inProcessCsi(env);
  const services = createReferenceDriver(
    { ...env, host, cloud: service.forCaller(csi) },
    {
      driverName: "ebs.csi.aws.com",
      nodeName: "node-1",
      services: "both",
      recordsFile: "/records/r.json",
      faults,
    },
  );
  await hub.serve("/csi.sock", services);
  const driver = hub.connect("/csi.sock");
  const lines: string[] = [];
  // An id is called after its first appearance: which one was drawn says nothing of the driver.
  const names = new Map<string, string>();
  const nameOf = (id: string, kind: string) => {
    const name = names.get(id) ?? `${kind}#${names.size}`;
    names.set(id, name);
    return name;
  };
  const note = async (label: string, run: () => Promise<unknown>) => {
    const text = await run().then(
      (answer) => JSON.stringify(answer, (_, v) => (typeof v === "bigint" ? `${v}n` : v)),
      (error: { readonly code?: string; readonly detail?: string }) => `${error.code}: ${error.detail}`,
    );
    lines.push(`${label}: ${text}`.replaceAll(/\b(vol|snap|group)-[0-9a-f]{17}/g, nameOf));
  };
  await battery(driver, host, note);
  return lines;
}

type Note = (label: string, run: () => Promise<unknown>) => Promise<void>;

async function battery(driver: CsiConnection, host: SimulatedHost, note: Note): Promise<void> {
  const { identity, controller, groupController: groups, node } = driver;
  await note("info", () => identity.getPluginInfo({}, call));
  for (const n of [1, 2]) await note(`plugin ${n}`, () => identity.getPluginCapabilities({}, call));
  await note("probe", () => identity.probe({}, call));
  await note("controller capabilities", () => controller.controllerGetCapabilities({}, call));
  await note("node capabilities", () => node.nodeGetCapabilities({}, call));
  await note("group capabilities", () => groups.groupControllerGetCapabilities({}, call));
  await note("node info", () => node.nodeGetInfo({}, call));
  await note("capacity", () => controller.getCapacity({}, call));
  const mars = { segments: { [key]: "mars" } };
  await note("capacity elsewhere", () => controller.getCapacity({ accessibleTopology: mars }, call));

  const ask = {
    name: "a",
    volumeCapabilities: [mounted],
    capacityRange: { requiredBytes: 2n * gibibyte, limitBytes: 3n * gibibyte },
    accessibilityRequirements: { requisite: here },
  };
  type Create = Parameters<typeof controller.createVolume>[0];
  const create = async (label: string, change: Create = {}) => {
    let id = "";
    await note(`create ${label}`, async () => {
      const answer = await controller.createVolume({ ...ask, ...change } as Create, call);
      id = answer.volume?.volumeId ?? "";
      return answer;
    });
    return id;
  };
  const a = await create("a");
  await create("a again");
  await create("a larger", { capacityRange: { requiredBytes: 5n * gibibyte } });
  await create("a otherwise", { parameters: { type: "io2" } });
  await create("without name", { name: "", secrets: { password: "hunter2" } });
  await create("without capabilities", { name: "w", volumeCapabilities: [] });
  await create("without mode", {
    name: "w",
    volumeCapabilities: [{ accessType: { case: "mount", value: {} } }],
  });
  await create("without type", {
    name: "w",
    volumeCapabilities: [{ accessMode: { mode: Mode.SINGLE_NODE_WRITER } }],
  });
  await note("create two at once", async () => {
    const both = await Promise.all(
      [1, 2].map(() =>
        controller.createVolume({ ...ask, name: "both" }, call).then(
          (answer) => answer.volume?.volumeId,
          (error: { readonly code: string }) => error.code,
        ),
      ),
    );
    return both;
  });
  await create("control characters", { name: "w\u0001" });
  await create("unicode", { name: "größe-卷" });
  const ids: string[] = [];
  for (const end of ["x", "y"]) ids.push(await create(`long ${end}`, { name: `${"n".repeat(127)}${end}` }));
  await note("long names are two", async () => ids[0] === ids[1]);
  await create("too long", { name: "n".repeat(129) });
  await create("large map", { name: "m", parameters: { key: "v".repeat(5000) } });
  await create("limit below required", { name: "w", capacityRange: { requiredBytes: 9n, limitBytes: 8n } });
  await create("negative", { name: "w", capacityRange: { requiredBytes: -1n } });
  await create("impossible", { name: "w", capacityRange: { requiredBytes: 2n ** 60n } });
  await create("bad settings", { name: "w", mutableParameters: { nonsense: "1" } });
  await create("elsewhere", { name: "w", accessibilityRequirements: { requisite: [mars] } });
  const fromSnapshot = (snapshotId: string) => ({
    type: { case: "snapshot" as const, value: { snapshotId } },
  });
  const fromVolume = (volumeId: string) => ({ type: { case: "volume" as const, value: { volumeId } } });
  await create("of no snapshot", { name: "w", volumeContentSource: fromSnapshot("snap-00") });
  await create("of no volume", { name: "w", volumeContentSource: fromVolume("vol-00") });

  const publish = { volumeId: a, nodeId: instance(1).instanceId, volumeCapability: mounted };
  type Publish = Parameters<typeof controller.controllerPublishVolume>[0];
  const attach = (label: string, change: Publish = {}) =>
    note(`publish ${label}`, () =>
      controller.controllerPublishVolume({ ...publish, ...change } as Publish, call),
    );
  await attach("no id", { volumeId: "" });
  await attach("no node", { nodeId: "" });
  await note("publish no capability", () =>
    controller.controllerPublishVolume({ volumeId: a, nodeId: instance(1).instanceId }, call),
  );
  await attach("unknown volume", { volumeId: "vol-00" });
  await attach("unknown node", { nodeId: "i-00" });

  const s = `/stage/${a}`;
  const stage = { volumeId: a, stagingTargetPath: s, volumeCapability: mounted };
  type Stage = Parameters<typeof node.nodeStageVolume>[0];
  const stages = (label: string, change: Stage = {}) =>
    note(`stage ${label}`, () => node.nodeStageVolume({ ...stage, ...change } as Stage, call));
  await stages("unpublished");
  await attach("a");
  await attach("a again");
  await attach("a read-only", { readonly: true });
  await stages("no id", { volumeId: "" });
  await stages("no path", { stagingTargetPath: "" });
  await note("stage no capability", () => node.nodeStageVolume({ volumeId: a, stagingTargetPath: s }, call));
  await stages("unknown volume", { volumeId: "vol-00" });
  await stages("relative path", { stagingTargetPath: "s" });
  await note("node-publish unstaged", () => node.nodePublishVolume({ ...stage, targetPath: "/pod/t" }, call));
  await note("unstage unstaged", () => node.nodeUnstageVolume({ volumeId: a, stagingTargetPath: s }, call));
  await stages("a");
  await stages("a again");
  await stages("a as block", { volumeCapability: block });

  const target = { ...stage, targetPath: "/pod/t" };
  type Target = Parameters<typeof node.nodePublishVolume>[0];
  const mount = (label: string, change: Target = {}) =>
    note(`node-publish ${label}`, () => node.nodePublishVolume({ ...target, ...change } as Target, call));
  await mount("no id", { volumeId: "" });
  await mount("no target", { targetPath: "" });
  await note("node-publish no capability", () =>
    node.nodePublishVolume({ volumeId: a, stagingTargetPath: s, targetPath: "/pod/t" }, call),
  );
  await mount("unknown volume", { volumeId: "vol-00" });
  await mount("relative", { targetPath: "t" });
  await note("node-unpublish unpublished", () =>
    node.nodeUnpublishVolume({ volumeId: a, targetPath: "/pod/t" }, call),
  );
  await mount("a");
  await mount("a again");
  await mount("a read-only", { readonly: true });
  await mount("a elsewhere", { targetPath: "/pod/u" });
  await mount("a elsewhere read-only", { targetPath: "/pod/r", readonly: true });
  await note("write", () => host.writeFileAtomic("/pod/t/data", "precious"));
  await note("write read-only", () => host.writeFileAtomic("/pod/r/data", "x"));
  const stats = (label: string, request: Parameters<typeof node.nodeGetVolumeStats>[0]) =>
    note(`stats ${label}`, () => node.nodeGetVolumeStats(request, call));
  await stats("a", { volumeId: a, volumePath: "/pod/t" });
  await stats("no id", { volumePath: "/pod/t" });
  await stats("no path", { volumeId: a });
  await stats("unknown volume", { volumeId: "vol-00", volumePath: "/pod/t" });
  await stats("unknown path", { volumeId: a, volumePath: "/nowhere" });

  const expand = (label: string, request: Parameters<typeof controller.controllerExpandVolume>[0]) =>
    note(`expand ${label}`, () => controller.controllerExpandVolume(request, call));
  const range = { requiredBytes: 4n * gibibyte };
  await expand("no id", { capacityRange: range });
  await expand("no range", { volumeId: a });
  await expand("unknown", { volumeId: "vol-00", capacityRange: range });
  for (const n of [1, 2]) await expand(`a ${n}`, { volumeId: a, capacityRange: range });
  await note("get expanded", () => controller.controllerGetVolume({ volumeId: a }, call));
  const grow = (label: string, request: Parameters<typeof node.nodeExpandVolume>[0]) =>
    note(`node-expand ${label}`, () => node.nodeExpandVolume(request, call));
  await grow("a", { volumeId: a, volumePath: "/pod/t", capacityRange: range });
  await grow("no id", { volumePath: "/pod/t" });
  await grow("no path", { volumeId: a });
  await grow("unknown volume", { volumeId: "vol-00", volumePath: "/pod/t" });
  await grow("unknown path", { volumeId: a, volumePath: "/nowhere" });

  const modify = (label: string, request: Parameters<typeof controller.controllerModifyVolume>[0]) =>
    note(`modify ${label}`, () => controller.controllerModifyVolume(request, call));
  await modify("no id", { mutableParameters: { iops: "1" } });
  await modify("unknown volume", { volumeId: "vol-00", mutableParameters: { iops: "1" } });
  await modify("unknown key", { volumeId: a, mutableParameters: { nonsense: "1" } });
  for (const n of [1, 2]) await modify(`a ${n}`, { volumeId: a, mutableParameters: { iops: "1" } });

  await note("two at once", () =>
    Promise.all(
      [1, 2].map(() =>
        node.nodeStageVolume(stage, call).then(
          () => "OK",
          (error: { readonly code: string }) => error.code,
        ),
      ),
    ),
  );
  await snapshots(driver, note, { a, create, fromSnapshot, fromVolume });
  await lists(driver, note, a);

  await note("read", () => host.readFile("/pod/t/data"));
  for (const path of ["/pod/t", "/pod/u", "/pod/r"]) {
    await note(`node-unpublish ${path}`, () =>
      node.nodeUnpublishVolume({ volumeId: a, targetPath: path }, call),
    );
    await note(`what is left at ${path}`, () => host.stat(path));
  }
  await note("node-unpublish no id", () => node.nodeUnpublishVolume({ targetPath: "/pod/t" }, call));
  await note("node-unpublish no target", () => node.nodeUnpublishVolume({ volumeId: a }, call));
  await note("unstage no id", () => node.nodeUnstageVolume({ stagingTargetPath: s }, call));
  await note("unstage no path", () => node.nodeUnstageVolume({ volumeId: a }, call));
  await note("unstage", () => node.nodeUnstageVolume({ volumeId: a, stagingTargetPath: s }, call));
  await stages("again");
  await note("read again", () => host.readFile(`${s}/data`));
  await note("unstage again", () => node.nodeUnstageVolume({ volumeId: a, stagingTargetPath: s }, call));

  await note("delete published", () => controller.deleteVolume({ volumeId: a }, call));
  await note("unpublish no id", () => controller.controllerUnpublishVolume({}, call));
  await note("unpublish everywhere", () => controller.controllerUnpublishVolume({ volumeId: a }, call));
  await note("get unpublished", () => controller.controllerGetVolume({ volumeId: a }, call));
  for (const n of [1, 2]) {
    const request = { volumeId: a, nodeId: instance(1).instanceId };
    await note(`unpublish ${n}`, () => controller.controllerUnpublishVolume(request, call));
  }
  await oneWriter(driver, note, create);
  await note("delete no id", () => controller.deleteVolume({}, call));
  for (const n of [1, 2]) await note(`delete ${n}`, () => controller.deleteVolume({ volumeId: a }, call));
  await note("list after deleting", () => controller.listVolumes({}, call));
}

type CreateStep = (
  label: string,
  change: Parameters<CsiConnection["controller"]["createVolume"]>[0],
) => Promise<string>;

/** A volume that one pod alone may have. */
async function oneWriter({ controller, node }: CsiConnection, note: Note, create: CreateStep): Promise<void> {
  const volumeId = await create("for one writer", { name: "one", volumeCapabilities: [single] });
  const nodeId = instance(1).instanceId;
  const request = { volumeId, nodeId, volumeCapability: single, stagingTargetPath: "/stage/one" };
  await note("one: publish", () => controller.controllerPublishVolume(request, call));
  await note("one: stage", () => node.nodeStageVolume(request, call));
  for (const targetPath of ["/one/t", "/one/u"]) {
    await note(`one: node-publish ${targetPath}`, () =>
      node.nodePublishVolume({ ...request, targetPath }, call),
    );
  }
}

/** Snapshots, copies and groups. */
async function snapshots(
  { controller, groupController: groups, snapshotMetadata, node }: CsiConnection,
  note: Note,
  given: {
    readonly a: string;
    readonly create: CreateStep;
    fromSnapshot(
      id: string,
    ): NonNullable<Parameters<CsiConnection["controller"]["createVolume"]>[0]["volumeContentSource"]>;
    fromVolume(
      id: string,
    ): NonNullable<Parameters<CsiConnection["controller"]["createVolume"]>[0]["volumeContentSource"]>;
  },
): Promise<void> {
  const { a, create } = given;
  const other = await create("other", { name: "other" });
  let id = "";
  const snap = (label: string, request: Parameters<typeof controller.createSnapshot>[0]) =>
    note(`snapshot ${label}`, async () => {
      const answer = await controller.createSnapshot(request, call);
      if (id === "") id = answer.snapshot?.snapshotId ?? "";
      return answer;
    });
  await snap("s", { name: "s", sourceVolumeId: a });
  await snap("s again", { name: "s", sourceVolumeId: a });
  await snap("s of another", { name: "s", sourceVolumeId: other });
  await snap("no name", { sourceVolumeId: a });
  await snap("no source", { name: "t" });
  await snap("of nothing", { name: "t", sourceVolumeId: "vol-00" });
  await snap("long", { name: "n".repeat(128), sourceVolumeId: other });
  for (const snapshotId of [id, "", "snap-00"]) {
    await note(`get snapshot ${snapshotId}`, () => controller.getSnapshot({ snapshotId }, call));
  }
  const { getMetadataAllocated, getMetadataDelta } = snapshotMetadata;
  const windows = [{ maxResults: 1 }, { startingOffset: 600_000n }, { startingOffset: 2n ** 62n }];
  for (const [n, window] of windows.entries()) {
    await note(`allocated, window ${n}`, () =>
      whole(getMetadataAllocated({ snapshotId: id, ...window }, call)),
    );
  }
  for (const snapshotId of [id, "", "snap-00"]) {
    const delta = { baseSnapshotId: snapshotId, targetSnapshotId: id };
    await note(`allocated in ${snapshotId}`, () => whole(getMetadataAllocated({ snapshotId }, call)));
    await note(`changed since ${snapshotId}`, () => whole(getMetadataDelta(delta, call)));
  }
  await note("list by id", () => controller.listSnapshots({ snapshotId: id }, call));
  await note("list by no id", () => controller.listSnapshots({ snapshotId: "snap-00" }, call));
  await note("list by source", () => controller.listSnapshots({ sourceVolumeId: a }, call));
  await note("list snapshots from garbage", () => controller.listSnapshots({ startingToken: "x" }, call));
  await pages(note, "snapshots", (startingToken) =>
    controller.listSnapshots({ maxEntries: 1, startingToken }, call),
  );

  const unlimited = { capacityRange: { requiredBytes: 4n * gibibyte } };
  const copy = await create("of snapshot", {
    ...unlimited,
    name: "copy",
    volumeContentSource: given.fromSnapshot(id),
  });
  await create("copy of another", { ...unlimited, name: "copy", volumeContentSource: given.fromVolume(a) });
  const small = { capacityRange: { requiredBytes: gibibyte, limitBytes: gibibyte } };
  await create("too small a copy", { ...small, name: "small", volumeContentSource: given.fromVolume(a) });
  const request = { volumeId: copy, nodeId: instance(1).instanceId, volumeCapability: mounted };
  await note("publish copy", () => controller.controllerPublishVolume(request, call));
  await note("stage copy", () =>
    node.nodeStageVolume({ ...request, stagingTargetPath: "/stage/copy" }, call),
  );
  await note("publish copy", () =>
    node.nodePublishVolume({ ...request, stagingTargetPath: "/stage/copy", targetPath: "/copy" }, call),
  );
  await note("stats of copy", () => node.nodeGetVolumeStats({ volumeId: copy, volumePath: "/copy" }, call));

  let group = "";
  let members: string[] = [];
  const cut = (label: string, name: string, sourceVolumeIds: string[]) =>
    note(`group ${label}`, async () => {
      const answer = await groups.createVolumeGroupSnapshot({ name, sourceVolumeIds }, call);
      if (group === "") group = answer.groupSnapshot?.groupSnapshotId ?? "";
      if (members.length === 0) members = answer.groupSnapshot?.snapshots.map((s) => s.snapshotId) ?? [];
      return answer;
    });
  await cut("g", "g", [a, other]);
  await cut("g again", "g", [a, other]);
  await cut("g of others", "g", [a]);
  await cut("no name", "", [a]);
  await cut("no sources", "h", []);
  const get = (groupSnapshotId: string, snapshotIds: string[]) =>
    note(`get group ${groupSnapshotId} ${snapshotIds.length}`, () =>
      groups.getVolumeGroupSnapshot({ groupSnapshotId, snapshotIds }, call),
    );
  await get(group, members);
  await get("", members);
  await get("group-00", []);
  await get(group, ["snap-00"]);
  await note("delete member", () => controller.deleteSnapshot({ snapshotId: members[0] ?? "" }, call));
  const remove = (groupSnapshotId: string, snapshotIds: string[]) =>
    note(`delete group ${groupSnapshotId} ${snapshotIds.length}`, () =>
      groups.deleteVolumeGroupSnapshot({ groupSnapshotId, snapshotIds }, call),
    );
  await remove(group, ["snap-00"]);
  await remove("", []);
  await remove(group, members);
  await remove(group, members);
  await note("delete snapshot no id", () => controller.deleteSnapshot({}, call));
  await note("delete other, which has a snapshot", () => controller.deleteVolume({ volumeId: other }, call));
  for (const n of [1, 2]) {
    await note(`delete snapshot ${n}`, () => controller.deleteSnapshot({ snapshotId: id }, call));
  }
  await note("list snapshots after deleting", () => controller.listSnapshots({}, call));
}

async function whole<T>(stream: AsyncIterable<T>): Promise<readonly T[]> {
  const answers: T[] = [];
  for await (const answer of stream) answers.push(answer);
  return answers;
}

async function lists({ controller }: CsiConnection, note: Note, a: string): Promise<void> {
  await note("list all", () => controller.listVolumes({}, call));
  await pages(note, "volumes", (startingToken) =>
    controller.listVolumes({ maxEntries: 1, startingToken }, call),
  );
  await note("list negative", () => controller.listVolumes({ maxEntries: -1 }, call));
  await note("list from garbage", () => controller.listVolumes({ startingToken: "garbage" }, call));
  for (const volumeId of [a, "", "vol-00"]) {
    await note(`get ${volumeId}`, () => controller.controllerGetVolume({ volumeId }, call));
  }
  const validate = (label: string, volumeId: string, volumeCapabilities: Capability[]) =>
    note(`validate ${label}`, () =>
      controller.validateVolumeCapabilities({ volumeId, volumeCapabilities }, call),
    );
  await validate("a", a, [mounted]);
  await validate("no id", "", [mounted]);
  await validate("no capabilities", a, []);
  await validate("unknown", "vol-00", [mounted]);
  await validate("unsupported", a, [many]);
}

async function pages(
  note: Note,
  what: string,
  list: (token: string) => Promise<{ readonly nextToken: string; readonly entries: readonly unknown[] }>,
): Promise<void> {
  let token = "";
  for (let page = 1; page <= 15; page++) {
    await note(`page ${page} of ${what}`, async () => {
      const answer = await list(token);
      token = answer.nextToken;
      return answer;
    });
    if (token === "") return;
  }
}

describe("faults", () => {
  test("the same calls to the same driver have the same answers", async () => {
    expect(await answersOf([])).toEqual(await answersOf([]));
  });

  test("names and descriptions are one each", () => {
    expect(faultNames.length).toBeGreaterThanOrEqual(45);
    expect(new Set(Object.values(faultDescriptions)).size).toBe(faultNames.length);
    expect(isFaultName("list-repeats-entries")).toBe(true);
    expect(isFaultName("toString")).toBe(false);
  });

  test("of every call are faults of streams, too", async () => {
    const lines = await answersOf(["every-failure-internal"]);
    const metadata = lines.filter((line) => /^(allocated in|changed since) /.test(line));
    expect(metadata).toHaveLength(6);
    expect(metadata.slice(0, 2).every((line) => line.includes("volumeCapacityBytes"))).toBe(true);
    expect(metadata.slice(2).every((line) => line.includes(": INTERNAL: "))).toBe(true);
  });

  test.each(faultNames)("%s is noticed", async (name) => {
    const [good, bad] = [await answersOf([]), await answersOf([name])];
    const answers = new Set(good);
    expect(bad.filter((line) => !answers.has(line))).not.toEqual([]);
  });
});
