/**
 * A crossing of one node without a drain, with a fault at one call after another: the agent dies
 * before the call, or after it took effect but before the answer came, or only the answer is lost. Whatever happens, no disk is detached
 * while mounted, no written data is lost, nothing is left, and the node changes over.
 */
import { crashAtEveryPoint, crashInPairs } from "@longshore/testing/kube";
import { describe, expect, it } from "vitest";
import { crashesAt, FailingAgents, type Fault, lostAnswer, lostAnswersAt } from "./testing/failing-agents.ts";
import { NodeWorld, rootDir } from "./testing/node-world.ts";
import { StandInController } from "./testing/stand-in-controller.ts";

const inTree = { CSIMigration: true, CSIMigrationAWS: false };
const csi = { CSIMigration: true, CSIMigrationAWS: true };
const plugin = "kubernetes.io/aws-ebs";

type Mode = "Filesystem" | "Block";

/** Runs the crossing; returns the calls that the agents made. */
async function crossing(
  from: Readonly<Record<string, boolean>>,
  to: Readonly<Record<string, boolean>>,
  mode: Mode,
  faults: readonly Fault[],
): Promise<readonly (readonly string[])[]> {
  const world = await NodeWorld.create();
  const end = new AbortController();
  const controller = new StandInController(world);
  controller.start(end.signal);
  world.registrarRestarts = true;
  await world.serveDriver();
  const awsElasticBlockStore = { volumeID: "aws://us-east-1a/vol-1", fsType: "ext4" };
  await world.volume("vol-1", { awsElasticBlockStore, volumeMode: mode });
  let current = from;
  const agents = new FailingAgents(world, () => current, faults);
  const livePod = async (name: string, marker: string, expected: string) => {
    const pod = await (mode === "Block" ? world.blockPod(name, ["vol-1"]) : world.pod(name, ["vol-1"]));
    const { uid } = pod.metadata;
    const mount = () => agents.running?.volumes.mountedVolumes(uid).get("data-vol-1");
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
    await world.until(`${name} gone`, () => agents.running?.volumes.podVolumesGone(uid) === true);
  };
  agents.launch();
  const first = await livePod("p", "1", "");
  // Flipped without a drain.
  current = to;
  if (await agents.stop()) agents.launch();
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
  await agents.stop();
  return agents.played;
}

/** Calls of the agent that change its node, its objects, or what its driver has done; a directory that it removes was empty. */
const isChange = (what: string): boolean =>
  /^(create|patch|update|delete|make|write|removeFile|format|mount|bind|unmount|notify|node(Uns|S)tage|node(Unp|P)ublish)/.test(
    what,
  );

describe.each([
  { name: "to CSI", mode: "Filesystem", from: inTree, to: csi },
  { name: "back to in-tree", mode: "Filesystem", from: csi, to: inTree },
  { name: "to CSI", mode: "Block", from: inTree, to: csi },
  { name: "back to in-tree", mode: "Block", from: csi, to: inTree },
] as const)("a crossing $name of a volume of mode $mode", ({ name: direction, mode, from, to }) => {
  const name = `node, ${direction}, ${mode}`;

  it.each(["before", "after"] as const)(
    "survives a crash %s any call (node-agent.md 11; contract.md C4)",
    async (side) => {
      const { summary, failures, calls } = await crashAtEveryPoint(
        (points) => crossing(from, to, mode, crashesAt(points)),
        // "After call n" is next to "before call n + 1": every second call of each covers all gaps.
        { name: `${name}, ${side}`, sides: [side], isChosen: (call) => call % 2 === 1 },
      );
      console.log(summary);
      expect(failures).toEqual([]);
      expect(calls.length).toBeGreaterThan(50);
    },
  );

  it("survives a lost answer to any call (node-agent.md 11; contract.md C4)", async () => {
    const { summary, failures } = await crashAtEveryPoint(
      (points) => crossing(from, to, mode, lostAnswersAt(points)),
      {
        name: `${name}, lost answers`,
        sides: ["after"],
        isChosen: (_, call) => lostAnswer(call) !== undefined,
      },
    );
    console.log(summary);
    expect(failures).toEqual([]);
  });

  it("survives a crash at any call, and another one at any later call (node-agent.md 11; contract.md C4)", async () => {
    const { summary, failures } = await crashInPairs(
      (points) => crossing(from, to, mode, crashesAt(points)),
      10,
      { name, isChange },
    );
    console.log(summary);
    expect(failures).toEqual([]);
  }, 3_600_000);
});
