/**
 * A crossing of one node without a drain, with the agent dying at one call after another: before the
 * call, or after it took effect but before the answer came. Whatever happens, no disk is detached
 * while mounted, no written data is lost, nothing is left, and the node changes over.
 */
import { describe, expect, it } from "vitest";
import { NodeWorld, type RunningAgent, rootDir } from "./testing/node-world.ts";
import { StandInController } from "./testing/stand-in-controller.ts";

const inTree = { CSIMigration: true, CSIMigrationAWS: false };
const csi = { CSIMigration: true, CSIMigrationAWS: true };
const plugin = "kubernetes.io/aws-ebs";

interface Crash {
  readonly at: number;
  readonly when: "before" | "after";
}

/** Runs the crossing; gives the number of calls that the agents made. */
async function crossing(
  from: Readonly<Record<string, boolean>>,
  to: Readonly<Record<string, boolean>>,
  crash: Crash | undefined,
): Promise<number> {
  const world = await NodeWorld.create();
  const end = new AbortController();
  const controller = new StandInController(world);
  controller.start(end.signal);
  await world.serveDriver();
  await world.volume("vol-1");
  let calls = 0;
  let current = from;
  let crashed = false;
  // Undefined between a crash and the next start.
  let running: RunningAgent | undefined;
  const launch = () => {
    const agent = world.start(current, (_call, when) => {
      if (when === "before") calls++;
      if (crashed || crash?.when !== when || calls !== crash.at) return;
      crashed = true;
      agent.crash();
      running = undefined;
      void world.clock.sleep(500, world.signal).then(launch);
    });
    running = agent;
  };
  const stop = async () => {
    const agent = running;
    await world.clock.run(Promise.resolve(agent?.stop()));
    return agent !== undefined;
  };
  const livePod = async (name: string, marker: string, expected: string) => {
    const pod = await world.pod(name, ["vol-1"]);
    const { uid } = pod.metadata;
    const mount = () => running?.volumes.mountedVolumes(uid).get("data-vol-1");
    await world.until(`${name} mounted`, () => mount() !== undefined);
    world.running.add(uid);
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
  await world.clock.advance(5000);
  await endPod("p", first);
  const listed = to === csi ? plugin : undefined;
  await world.until("changed over", async () => (await world.migratedPlugins()) === listed);
  const second = await livePod("q", "2", "1");
  expect([...controller.attached.values()]).toEqual([to === csi ? "csi" : "in-tree"]);
  await endPod("q", second);
  expect(controller.violations).toEqual([]);
  const left = [];
  for (const directory of ["plugins/kubernetes.io/csi/pv", `pods/${first}/volumes/kubernetes.io~csi`]) {
    left.push(...((await world.host.readDirectory(`${rootDir}/${directory}`)) ?? []));
  }
  expect(left).toEqual([]);
  end.abort();
  await stop();
  return calls;
}

describe.each([
  { name: "to CSI", from: inTree, to: csi },
  { name: "back to in-tree", from: csi, to: inTree },
])("a crossing $name", ({ from, to }) => {
  it.each(["before", "after"] as const)("survives a crash %s any call", async (when) => {
    const calls = await crossing(from, to, undefined);
    expect(calls).toBeGreaterThan(50);
    const failures: string[] = [];
    // "After call n" is next to "before call n + 1": every second call of each covers all gaps.
    for (let at = 1; at <= calls; at += 2) {
      await crossing(from, to, { at, when }).catch((error: unknown) => {
        failures.push(`crash ${when} call ${at}: ${error instanceof Error ? error.message : error}`);
      });
    }
    expect(failures).toEqual([]);
  });
});
