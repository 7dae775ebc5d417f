/** What is written to Node and CSINode, in which order, and what happens when a write loses. */
import { type ApiServer, createApiServer, memoryStore } from "@longshore/apiserver";
import { type CSINode, KubeApiError, type KubeClient, resources } from "@longshore/kube";
import { noMeter, recordingLogger, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { migratedPluginsAnnotation } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { CsiNodeWriter, NodeMissingError } from "./csi-node-writer.ts";
import { NodeInfoManager } from "./node-info.ts";

const signal = new AbortController().signal;
const info = { nodeID: "i-1", maxVolumes: 0n, topology: { zone: "a" } };
const conflict = () =>
  new KubeApiError({
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code: 409,
    reason: "Conflict",
    message: "lost",
  });
const exists = () =>
  new KubeApiError({
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code: 409,
    reason: "AlreadyExists",
    message: "there",
  });
const ref = { name: "n" };
const refusal = (code: number, reason: string) =>
  new KubeApiError({ kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message: reason });

/** @param oldInfo the node's CSINodeInfo, besides its metadata, or why it cannot be read; undefined: there is none */
async function infoWorld({
  withNode = true,
  oldInfo,
}: {
  withNode?: boolean;
  oldInfo?: object | Error;
} = {}) {
  const clock = new VirtualClock();
  const logger = recordingLogger();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const api: ApiServer = createApiServer(env, { store: memoryStore() });
  const kube = api.client();
  if (withNode) await kube.create(resources.nodes, { metadata: ref }, { signal });
  const requests: string[] = [];
  /** By request, e.g. `update csinodes`: what it fails with, in turn; a function is called and nothing fails. */
  const faults = new Map<string, (Error | (() => Promise<unknown>))[]>();
  const watched = new Proxy(kube, {
    get: (target, verb) => {
      const member = Reflect.get(target, verb) as (...args: unknown[]) => unknown;
      return async (...args: unknown[]) => {
        const request = `${String(verb)} ${(args[0] as { readonly plural: string }).plural}`;
        if (request === "servedVersion csinodeinfos") return oldInfo === undefined ? undefined : "v1alpha1";
        requests.push(request);
        const fault = faults.get(request)?.shift();
        if (fault instanceof Error) throw fault;
        await fault?.();
        if (request === "get csinodeinfos" && oldInfo !== undefined) {
          if (oldInfo instanceof Error) throw oldInfo;
          return { metadata: ref, ...oldInfo };
        }
        return member.apply(target, args);
      };
    },
  }) as KubeClient;
  const writer = new CsiNodeWriter({ ...env, logger, kube: watched }, "n");
  const manager = new NodeInfoManager(watched, "n", writer);
  return {
    kube,
    clock,
    requests,
    faults,
    writer,
    manager,
    logged: () => logger.lines.map(({ level, fields }) => ({ level, fields })),
    writes: () => requests.filter((request) => !request.startsWith("get")),
    csiNode: () => kube.get(resources.csiNodes, ref, { signal }),
    drivers: async () =>
      (await kube.get(resources.csiNodes, ref, { signal }))?.spec.drivers.map(({ name }) => name),
    annotation: async () =>
      (await kube.get(resources.csiNodes, ref, { signal }))?.metadata.annotations?.[
        migratedPluginsAnnotation
      ],
    /** What becomes of the promise while time runs. */
    settled: async (work: Promise<void>) => {
      const end = work.then(
        () => undefined,
        (error: unknown) => error,
      );
      await clock.advance(60_000);
      return end;
    },
  };
}

describe("a driver", () => {
  it("is written to the Node first, and leaves the CSINode first (node-agent.md 2.2, 2.3)", async () => {
    const world = await infoWorld();
    await world.manager.installDriver("d", info, signal);
    expect(world.writes()).toEqual(["patch nodes", "create csinodes"]);
    expect((await world.csiNode())?.metadata.ownerReferences).toMatchObject([{ kind: "Node", name: "n" }]);
    await world.manager.uninstallDriver("d", signal);
    expect(world.writes().slice(2)).toEqual(["update csinodes", "patch nodes"]);
    expect(await world.drivers()).toEqual([]);
  });

  it("that is there already costs no write (node-agent.md 2.2, 2.3)", async () => {
    const world = await infoWorld();
    await world.manager.installDriver("d", info, signal);
    await world.manager.installDriver("d", info, signal);
    expect(world.writes()).toHaveLength(2);
  });

  it("that is not there, or has no objects, is gone without a write (node-agent.md 2.2, 2.3)", async () => {
    const world = await infoWorld();
    await world.manager.uninstallDriver("d", signal);
    await world.kube.delete(resources.nodes, ref, { signal });
    await world.manager.uninstallDriver("d", signal);
    expect(world.writes()).toEqual([]);
    expect(await world.csiNode()).toBeUndefined();
  });

  it("is not written where there is no Node (node-agent.md 2.2, 2.3)", async () => {
    const world = await infoWorld({ withNode: false });
    await expect(world.manager.installDriver("d", info, signal)).rejects.toThrow(NodeMissingError);
    await expect(world.writer.setDriver("d", info, signal)).rejects.toThrow(NodeMissingError);
    expect(world.writes()).toEqual([]);
  });

  it("without a node ID is refused before anything is read (node-agent.md 2.2, 2.3)", async () => {
    const world = await infoWorld();
    const install = world.manager.installDriver("d", { ...info, nodeID: "" }, signal);
    await expect(install).rejects.toThrow(/empty node_id/);
    expect(world.requests).toEqual([]);
  });

  it("whose topology collides with a label reaches no CSINode (node-agent.md 2.2, 2.3)", async () => {
    const world = await infoWorld();
    const labels = { zone: "b" };
    await world.kube.patch(
      resources.nodes,
      ref,
      { type: "merge", body: { metadata: { labels } } },
      { signal },
    );
    await expect(world.manager.installDriver("d", info, signal)).rejects.toThrow(/topology value collision/);
    expect(world.writes()).toEqual([]);
  });
});

describe("the migrated plugins", () => {
  it("are published with a CSINode of no drivers, and in every later write (node-agent.md 2.4)", async () => {
    const world = await infoWorld();
    await world.writer.setMigratedPlugins(new Set(["kubernetes.io/aws-ebs"]), signal);
    expect(await world.drivers()).toEqual([]);
    expect(await world.annotation()).toBe("kubernetes.io/aws-ebs");
    const body = { metadata: { annotations: null } };
    await world.kube.patch(resources.csiNodes, ref, { type: "merge", body }, { signal });
    await world.writer.setDriver("d", info, signal);
    expect(await world.annotation()).toBe("kubernetes.io/aws-ebs");
    expect(world.writes()).toEqual(["create csinodes", "update csinodes"]);
  });

  it("are left as they are by a driver that comes before they are decided (node-agent.md 2.4)", async () => {
    const world = await infoWorld();
    await world.writer.setMigratedPlugins(new Set(["kubernetes.io/aws-ebs"]), signal);
    const restarted = new CsiNodeWriter(
      { ...world, random: new SeededRandom(1), logger: silentLogger, meter: noMeter },
      "n",
    );
    await restarted.setDriver("d", info, signal);
    expect(await world.annotation()).toBe("kubernetes.io/aws-ebs");
  });
});

describe("the CSINodeInfo of a node without a CSINode", () => {
  const csiDrivers = [{ driver: "o", nodeID: "o-1", topologyKeys: ["o/zone"] }];
  const o = { name: "o", nodeID: "o-1", topologyKeys: ["o/zone"] };
  const setUp = (oldInfo?: object | Error) => infoWorld(oldInfo === undefined ? {} : { oldInfo });

  it("is read once, and its drivers are taken over beside the new one (node-agent.md 2.1)", async () => {
    const world = await setUp({ csiDrivers });
    world.faults.set("create csinodes", [new Error("the API server is down")]);
    await world.settled(world.writer.setDriver("d", info, signal));
    await world.writer.setDriver("d", info, signal);
    await world.writer.setDriver("e", info, signal);
    expect((await world.csiNode())?.spec.drivers).toMatchObject([o, { name: "d" }, { name: "e" }]);
    expect(world.requests.filter((request) => request.endsWith("csinodeinfos"))).toHaveLength(1);
    expect(world.logged()).toEqual([]);
  });

  it("brings back nothing when the CSINode is deleted (node-agent.md 2.1)", async () => {
    const world = await setUp({ csiDrivers });
    await world.writer.setDriver("d", info, signal);
    await world.kube.delete(resources.csiNodes, ref, { signal });
    await world.writer.setDriver("d", info, signal);
    expect(await world.drivers()).toEqual(["d"]);
  });

  it("is not read where there was a CSINode before (node-agent.md 2.1)", async () => {
    const world = await setUp({ csiDrivers });
    await world.kube.create(resources.csiNodes, { metadata: ref, spec: { drivers: [] } }, { signal });
    await world.writer.setDriver("d", info, signal);
    await world.kube.delete(resources.csiNodes, ref, { signal });
    await world.writer.setDriver("d", info, signal);
    expect(await world.drivers()).toEqual(["d"]);
    expect(world.requests).not.toContain("get csinodeinfos");
  });

  it.each<[string, object | undefined, object]>([
    ["is of a kind that is not served", undefined, { level: "debug" }],
    ["is of a kind that is not served any more", refusal(404, "NotFound"), { level: "debug" }],
    ["may not be read", refusal(403, "Forbidden"), { level: "debug" }],
    [
      "is malformed",
      { csiDrivers: [...csiDrivers, { driver: "p", nodeID: 7 }] },
      { level: "warn", fields: { csiNodeInfo: "n", malformed: "csiDrivers[1].nodeID must be a string" } },
    ],
  ])("that %s adds nothing (node-agent.md 2.1)", async (_name, oldInfo, line) => {
    const world = await setUp(oldInfo);
    await world.writer.setDriver("d", info, signal);
    expect(await world.drivers()).toEqual(["d"]);
    expect(world.logged()).toMatchObject([line]);
  });

  it("is not asked for where the kind is not served (node-agent.md 2.1)", async () => {
    const world = await setUp();
    await world.writer.setDriver("d", info, signal);
    expect(world.requests).not.toContain("get csinodeinfos");
  });

  it("is left out when the server refuses what it says (node-agent.md 2.1)", async () => {
    const world = await setUp({ csiDrivers: [{ driver: "not a name", nodeID: "o-1" }] });
    await world.writer.setDriver("d", info, signal);
    expect(await world.drivers()).toEqual(["d"]);
    expect(world.logged()).toMatchObject([{ level: "warn", fields: { csiNodeInfo: "n" } }]);
  });

  it("that cannot be read for now lets no CSINode be made without it (node-agent.md 2.1)", async () => {
    const world = await setUp(refusal(500, "InternalError"));
    await expect(world.writer.setDriver("d", info, signal)).rejects.toThrow(/InternalError/);
    expect(world.writes()).toEqual([]);
  });
});

describe("a write of the CSINode", () => {
  it.each([
    ["once", 1, undefined],
    ["three times", 3, undefined],
    ["four times: its caller learns of it", 4, /lost/],
  ])("that loses %s (node-agent.md 2.2)", async (_name, times, message) => {
    const world = await infoWorld();
    await world.writer.setMigratedPlugins(new Set(), signal);
    world.faults.set("update csinodes", Array.from({ length: times }, conflict));
    const error = await world.settled(world.writer.setDriver("d", info, signal));
    expect(world.writes()).toHaveLength(1 + Math.min(times + 1, 4));
    if (message === undefined) expect(error).toBeUndefined();
    else expect((error as Error).message).toMatch(message);
    expect(await world.drivers()).toEqual(message === undefined ? ["d"] : []);
  });

  it("waits longer from loss to loss (node-agent.md 2.2)", async () => {
    const world = await infoWorld();
    await world.writer.setMigratedPlugins(new Set(), signal);
    const atMs: number[] = [];
    const noted = () => {
      atMs.push(world.clock.monotonicMs());
      return Promise.reject(conflict());
    };
    world.faults.set("update csinodes", [noted, noted, noted]);
    await world.settled(world.writer.setDriver("d", info, signal));
    const [first = 0, second = 0, third = 0] = atMs;
    expect([Math.round((second - first) / 10), Math.round((third - second) / 50)]).toEqual([1, 1]);
  });

  it("that finds the object made meanwhile changes that one (node-agent.md 2.2)", async () => {
    const world = await infoWorld();
    const made: CSINode = { metadata: ref, spec: { drivers: [{ name: "other", nodeID: "o-1" }] } };
    const make = () => world.kube.create(resources.csiNodes, made, { signal });
    world.faults.set("create csinodes", [make]);
    expect(await world.settled(world.writer.setDriver("d", info, signal))).toBeUndefined();
    expect(await world.drivers()).toEqual(["other", "d"]);
    world.faults.set("update csinodes", [exists()]);
    expect(await world.settled(world.writer.removeDriver("other", signal))).toBeUndefined();
    expect(await world.drivers()).toEqual(["d"]);
  });

  it("that fails otherwise fails at once, and the next goes on (node-agent.md 2.2)", async () => {
    const world = await infoWorld();
    world.faults.set("create csinodes", [new Error("the API server is down")]);
    const first = world.settled(world.writer.setDriver("d", info, signal));
    const second = world.settled(world.writer.setDriver("e", info, signal));
    expect(String(await first)).toMatch(/down/);
    expect(await second).toBeUndefined();
    expect(await world.drivers()).toEqual(["e"]);
  });

  it("waits for those before it, so that none undoes another (node-agent.md 2.2)", async () => {
    const world = await infoWorld();
    await Promise.all([
      world.writer.setDriver("d", info, signal),
      world.writer.setMigratedPlugins(new Set(["kubernetes.io/aws-ebs"]), signal),
      world.writer.setDriver("e", info, signal),
    ]);
    expect(await world.drivers()).toEqual(["d", "e"]);
    expect(world.writes()).toEqual(["create csinodes", "update csinodes"]);
  });

  it("ends when its caller gives up, between two attempts as well (node-agent.md 2.2)", async () => {
    const world = await infoWorld();
    await world.writer.setMigratedPlugins(new Set(), signal);
    world.faults.set("update csinodes", [conflict(), conflict()]);
    const caller = new AbortController();
    const write = world.writer.setDriver("d", info, caller.signal).catch((error: unknown) => error);
    await world.clock.advance(5);
    caller.abort(new Error("given up"));
    expect(String(await write)).toMatch(/given up/);
    await world.clock.advance(60_000);
    expect(world.writes()).toHaveLength(2);
  });
});
