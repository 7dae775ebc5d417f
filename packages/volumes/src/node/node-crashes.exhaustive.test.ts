/**
 * A crossing of one node without a drain, with a fault at one call after another: the agent dies
 * before the call, or after it took effect but before the answer came, or only the answer is lost. Whatever happens, no disk is detached
 * while mounted, no written data is lost, nothing is left, and the node changes over.
 */
import { lostReply } from "@longshore/csi";
import { KubeTransportError } from "@longshore/kube";
import { pointsOf, sampleOf } from "@longshore/testing/kube";
import { describe, expect, it } from "vitest";
import { NodeWorld, type RunningAgent, rootDir } from "./testing/node-world.ts";
import { StandInController } from "./testing/stand-in-controller.ts";

const inTree = { CSIMigration: true, CSIMigrationAWS: false };
const csi = { CSIMigration: true, CSIMigrationAWS: true };
const plugin = "kubernetes.io/aws-ebs";

type Mode = "Filesystem" | "Block";

interface Fault {
  /** The number of the call. */
  readonly at: number;
  /** The agent dies before or after it, or only its answer is lost. */
  readonly what: "crash before" | "crash after" | "lost answer to";
}

/** What a lost answer looks like to the caller; host calls never lose theirs. */
function lostAnswer(call: string): Error | undefined {
  if (/^node[A-Z]|^getInfo$|^notify/.test(call)) return lostReply(call);
  return /^(get|list|create|update|patch|delete)$/.test(call) ? new KubeTransportError("reset") : undefined;
}

/** Runs the crossing; returns the calls that the agents made. */
async function crossing(
  from: Readonly<Record<string, boolean>>,
  to: Readonly<Record<string, boolean>>,
  mode: Mode,
  faults: readonly Fault[],
): Promise<readonly string[]> {
  const world = await NodeWorld.create();
  const end = new AbortController();
  const controller = new StandInController(world);
  controller.start(end.signal);
  world.registrarRestarts = true;
  await world.serveDriver();
  const awsElasticBlockStore = { volumeID: "aws://us-east-1a/vol-1", fsType: "ext4" };
  await world.volume("vol-1", { awsElasticBlockStore, volumeMode: mode });
  const calls: string[] = [];
  let current = from;
  let faulted = 0;
  // An agent that is being stopped is not started again by the one who drops it.
  let stopping = false;
  // Undefined between a crash and the next start.
  let running: RunningAgent | undefined;
  const launch = () => {
    const agent = world.start(current, (call, when) => {
      if (when === "before") calls.push(call);
      const fault = faults[faulted];
      const moment = fault?.what === "crash before" ? "before" : "after";
      if (stopping || when !== moment || calls.length !== fault?.at) return;
      faulted++;
      if (fault.what === "lost answer to") {
        const error = lostAnswer(call);
        if (error !== undefined) throw error;
        return;
      }
      agent.crash();
      running = undefined;
      void world.clock.sleep(500, world.signal).then(launch);
    });
    running = agent;
  };
  const stop = async () => {
    const agent = running;
    stopping = true;
    await world.clock.run(Promise.resolve(agent?.stop()));
    stopping = false;
    return agent !== undefined;
  };
  const livePod = async (name: string, marker: string, expected: string) => {
    const pod = await (mode === "Block" ? world.blockPod(name, ["vol-1"]) : world.pod(name, ["vol-1"]));
    const { uid } = pod.metadata;
    const mount = () => running?.volumes.mountedVolumes(uid).get("data-vol-1");
    await world.until(`${name} mounted`, () => mount() !== undefined);
    world.running.add(uid);
    if (mode === "Block") {
      // A device of the simulation holds no data; that it is the disk's is what can be lost.
      const device = (await world.host.readLink(`${mount()?.path}`)) ?? "";
      expect((await world.host.stat(device))?.kind).toBe("blockDevice");
      return uid;
    }
    const file = `${mount()?.path}/data`;
    expect((await world.host.readFile(file)) ?? "").toBe(expected);
    await world.host.appendFileDurable(file, marker);
    return uid;
  };
  const endPod = async (name: string, uid: string) => {
    await world.deletePod(name);
    await world.clock.advance(1000);
    world.running.delete(uid);
    await world.until(`${name} detached`, () => controller.attached.size === 0);
    expect(await world.mounts()).toEqual([]);
    await world.until(`${name} gone`, () => running?.volumes.podVolumesGone(uid) === true);
  };
  launch();
  const first = await livePod("p", "1", "");
  // Flipped without a drain.
  current = to;
  if (await stop()) launch();
  await world.clock.advance(1500);
  await endPod("p", first);
  const listed = to === csi ? plugin : undefined;
  await world.until("changed over", async () => (await world.migratedPlugins()) === listed);
  const second = await livePod("q", "2", "1");
  expect([...controller.attached.values()]).toEqual([to === csi ? "csi" : "in-tree"]);
  await endPod("q", second);
  expect(controller.violations).toEqual([]);
  const left = [];
  for (const directory of [
    "plugins/kubernetes.io/csi/pv",
    "plugins/kubernetes.io/csi/volumeDevices/pv-vol-1",
    "plugins/kubernetes.io/csi/volumeDevices/publish",
    "plugins/kubernetes.io/csi/volumeDevices/staging",
    `pods/${first}/volumes/kubernetes.io~csi`,
    `pods/${first}/volumeDevices/kubernetes.io~csi`,
    `pods/${first}/volumeDevices/kubernetes.io~aws-ebs`,
  ]) {
    left.push(...((await world.host.readDirectory(`${rootDir}/${directory}`)) ?? []));
  }
  expect(left).toEqual([]);
  end.abort();
  await stop();
  return calls;
}

describe.each([
  { name: "to CSI", mode: "Filesystem", from: inTree, to: csi },
  { name: "back to in-tree", mode: "Filesystem", from: csi, to: inTree },
  { name: "to CSI", mode: "Block", from: inTree, to: csi },
  { name: "back to in-tree", mode: "Block", from: csi, to: inTree },
] as const)("a crossing $name of a volume of mode $mode", ({ from, to, mode }) => {
  it.each(["crash before", "crash after", "lost answer to"] as const)(
    "survives a %s any call (node-agent.md 11; contract.md C4)",
    async (what) => {
      const calls = await crossing(from, to, mode, []);
      expect(calls.length).toBeGreaterThan(50);
      const failures: string[] = [];
      let points = 0;
      for (const [index, call] of calls.entries()) {
        // "After call n" is next to "before call n + 1": every second call of each covers all gaps.
        const counts = what === "lost answer to" ? lostAnswer(call) !== undefined : index % 2 === 0;
        if (!counts) continue;
        points++;
        await crossing(from, to, mode, [{ at: index + 1, what }]).catch((error: unknown) => {
          const message = error instanceof Error ? error.message : error;
          failures.push(`${what} call ${index + 1}, ${call}: ${message}`);
        });
      }
      console.log(`${what}: ${points - failures.length}/${points} calls`);
      expect(failures).toEqual([]);
    },
    60_000,
  );

  it("survives a crash at any call, and another one at any later call (node-agent.md 11; contract.md C4)", async () => {
    const points = pointsOf((await crossing(from, to, mode, [])).length);
    // Calls are counted through both lives; the second makes calls of the first again, so that every later number is reached.
    const all = points.flatMap((first) =>
      points.flatMap((second) => (second.at > first.at ? [[first, second]] : [])),
    );
    const failures: string[] = [];
    const chosen = sampleOf(all, 10, 1);
    for (const pair of chosen) {
      const faults = pair.map(({ at, side }): Fault => ({ at, what: `crash ${side}` }));
      await crossing(from, to, mode, faults).catch((error: unknown) => {
        const message = error instanceof Error ? error.message : error;
        failures.push(`${faults.map(({ at, what }) => `${what} call ${at}`).join(", ")}: ${message}`);
      });
    }
    console.log(`${chosen.length - failures.length}/${chosen.length} of ${all.length} pairs of crash points`);
    expect(failures).toEqual([]);
  }, 1_800_000);
});
