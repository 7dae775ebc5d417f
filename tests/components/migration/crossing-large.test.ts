/** Crossings of a cluster with five nodes and two plugins, budgets and a DaemonSet, under faults. docs/behaviour/migration-controllers.md C1, C2. */
import { KubeTransportError, resources } from "@longshore/kube";
import {
  type CrossingDirection,
  type CrossingOptions,
  type CrossingPlan,
  type CrossingResult,
  configMapJournal,
  crossingSubject,
  planCrossing,
  runCrossing,
  underCrossingLease,
} from "@longshore/migration";
import { afterEach, expect, test } from "vitest";
import { type CrossingWorld, crossingWorld } from "./crossing-world.ts";

const subjects = ["aws-ebs", "cinder"].map(crossingSubject);
const [ebs, cinder] = subjects as [(typeof subjects)[0], (typeof subjects)[0]];
const signal = new AbortController().signal;
const worlds: CrossingWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.stop();
});

async function fiveNodes(): Promise<CrossingWorld> {
  const world = await crossingWorld({ subjects, nodes: 5, writers: 5, budget: true });
  worlds.push(world);
  return world;
}

type Run = Partial<CrossingOptions> & { readonly machine?: string };

/** One run, from the machine named, under the Lease. */
function run(
  world: CrossingWorld,
  direction: CrossingDirection,
  { machine = "m1", subject = ebs, ...rest }: Run = {},
): Promise<CrossingResult> {
  const env = { ...world.env, kube: faulty(world), platform: world.platform, host: world.host(machine) };
  const options = { subject, direction, journalFile: "/crossing.json", clusterJournal: true, ...rest };
  return underCrossingLease(env, { identity: machine }, signal, (kube, within, { isLater }) =>
    runCrossing({ ...env, kube }, { ...options, isLaterTerm: isLater }, within),
  );
}

/** A client whose server answers nothing while the world says so. */
function faulty(world: CrossingWorld): CrossingWorld["kube"] {
  return new Proxy(world.kube, {
    get(target, name) {
      const member = target[name as keyof typeof target] as (...args: unknown[]) => unknown;
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        if (world.away) return Promise.reject(new KubeTransportError("connection refused"));
        return member.apply(target, args);
      };
    },
  });
}

const pathsOf = (world: CrossingWorld, plugin: string) =>
  [...world.attached()].filter(([name]) => name.startsWith(plugin)).map(([, { path }]) => path);

async function cordoned(world: CrossingWorld) {
  const { items } = await world.kube.list(resources.nodes, { signal });
  return items.filter(({ spec }) => spec?.unschedulable === true).map(({ metadata }) => metadata.name);
}

test("two plugins go to CSI two nodes at a time and come back, and no disk has a mixed life (migration-controllers.md C1)", async () => {
  const world = await fiveNodes();
  for (const subject of subjects) {
    const plan: CrossingPlan = await planCrossing(
      world,
      { subject, direction: "migrate", maxUnavailable: 2 },
      signal,
    );
    expect(plan.nodes.map(({ name, batch }) => `${name} ${batch}`)).toEqual([
      "n1 1",
      "n2 1",
      "n3 2",
      "n4 2",
      "n5 3",
    ]);
    const result = await world.clock.run(run(world, "migrate", { subject, plan }));
    expect(result.nodesLeft).toEqual([]);
  }
  await world.clock.advance(5000);
  expect(pathsOf(world, "aws-ebs")).toEqual(Array(5).fill("csi"));
  expect(pathsOf(world, "cinder")).toEqual(Array(5).fill("csi"));
  await world.clock.run(run(world, "rollback", { subject: ebs, maxUnavailable: 2 }));
  await world.clock.advance(5000);
  expect(pathsOf(world, "aws-ebs")).toEqual(Array(5).fill("in-tree"));
  expect(pathsOf(world, "cinder")).toEqual(Array(5).fill("csi"));
  expect(await cordoned(world)).toEqual([]);
  expect(world.broken).toEqual([]);
});

test("an API server that is unreachable for a minute is waited for, under a Lease that lapses meanwhile (migration-controllers.md C1)", async () => {
  const world = await fiveNodes();
  const crossing = run(world, "migrate", { subject: cinder });
  await world.clock.advance(6000);
  expect(await cordoned(world)).not.toEqual([]);
  world.away = true;
  await world.clock.advance(60_000);
  world.away = false;
  const result = await world.clock.run(crossing);
  expect(result).toMatchObject({ resumed: true, nodesLeft: [] });
  await world.clock.advance(5000);
  expect(pathsOf(world, "cinder")).toEqual(Array(5).fill("csi"));
  expect(world.broken).toEqual([]);
});

test("one that comes back, and goes away again before the run has begun again, is waited for, too (migration-controllers.md C1)", async () => {
  const world = await fiveNodes();
  const waits: string[] = [];
  let starts = 0;
  const crossing = run(world, "migrate", {
    subject: cinder,
    onEvent: (event) => {
      if (event.kind === "stepStarted" && event.step === "preflight" && starts++ === 1) {
        world.away = true;
        // Shorter than the Lease lasts: the term is not lost again.
        world.clock.timer(4000, () => {
          world.away = false;
        });
      }
      if (event.kind !== "waiting" || event.step !== "preflight") return;
      waits.push(...event.wait.subjects.map(({ kind }) => kind));
    },
  });
  await world.clock.advance(6000);
  world.away = true;
  await world.clock.advance(60_000);
  world.away = false;
  expect(await world.clock.run(crossing)).toMatchObject({ resumed: true, nodesLeft: [] });
  expect(waits).toContain("API server");
  await world.clock.advance(5000);
  expect(pathsOf(world, "cinder")).toEqual(Array(5).fill("csi"));
  expect(world.broken).toEqual([]);
});

test("a node that dies in mid-crossing is waited for, and let go once it is deleted (migration-controllers.md C1)", async () => {
  const world = await fiveNodes();
  const died = run(world, "migrate", {
    stepTimeoutMs: 120_000,
    onEvent: (event) => {
      if (event.kind === "stepStarted" && event.step === "flip" && event.nodeName === "n2")
        world.dead.add("n2");
    },
  });
  await expect(world.clock.run(died)).rejects.toMatchObject({
    name: "StepTimeoutError",
    nodeName: "n2",
    step: "flip",
  });
  expect(await cordoned(world)).toEqual(["n2"]);
  const again = run(world, "migrate", { stepTimeoutMs: 120_000 });
  await world.clock.advance(30_000);
  await world.kube.delete(resources.nodes, { name: "n2" }, { signal });
  expect(await world.clock.run(again)).toMatchObject({ resumed: true, nodesLeft: [] });
  await world.clock.advance(5000);
  expect(pathsOf(world, "aws-ebs")).toEqual(Array(5).fill("csi"));
  expect(world.broken).toEqual([]);
});

test("a run pauses between batches, and another machine goes on (migration-controllers.md C1)", async () => {
  const world = await fiveNodes();
  const first = await world.clock.run(run(world, "migrate", { pauseAfter: 2 }));
  expect(first.nodesLeft).toEqual(["n3", "n4", "n5"]);
  const only = await world.clock.run(run(world, "migrate", { machine: "m2", onlyNodes: ["n5"] }));
  expect(only).toMatchObject({ resumed: true, nodesLeft: ["n3", "n4"] });
  const last = await world.clock.run(run(world, "migrate", { machine: "m3" }));
  expect(last).toMatchObject({ resumed: true, nodesLeft: [] });
  expect(last.steps.map(({ name }) => name).filter((name) => name.endsWith("flip"))).toEqual([
    "n3: flip",
    "n4: flip",
  ]);
  // On the first machine's disk the journal is older than in the cluster.
  expect(await world.clock.run(run(world, "migrate"))).toMatchObject({ nodesLeft: [] });
  expect(world.broken).toEqual([]);
});

test("a run whose journal only counts the nodes before learns them from the nodes (migration-controllers.md C1)", async () => {
  const world = await fiveNodes();
  await world.clock.run(run(world, "migrate", { pauseAfter: 2 }));
  const journals = configMapJournal(world.kube, ebs);
  const journal = await journals.read(signal);
  if (journal === undefined) throw new Error("there is no journal");
  // As that of a crossing of many nodes.
  const { writes = 0 } = journal;
  await journals.write({ ...journal, nodesDone: ["n2"], nodesDoneEarlier: 1, writes: writes + 1 }, signal);
  const next = await world.clock.run(run(world, "migrate", { machine: "m2", onlyNodes: ["n4"] }));
  expect(next).toMatchObject({ resumed: true, nodesLeft: ["n3", "n5"] });
  expect((await journals.read(signal))?.nodesDone).toEqual(["n1", "n2", "n4"]);
  expect(await world.clock.run(run(world, "migrate"))).toMatchObject({ nodesLeft: [] });
  expect(world.broken).toEqual([]);
});

test("a run stops at a sign that a disk is attached by both paths, before its next change (migration-controllers.md C1)", async () => {
  const world = await fiveNodes();
  const [name = "", { nodeName = "" } = {}] =
    [...world.attached()].find(([disk]) => disk.startsWith("aws-ebs")) ?? [];
  const source = { persistentVolumeName: name };
  const va = {
    metadata: { name: "by-the-driver-too" },
    spec: { attacher: ebs.driverName, nodeName, source },
  };
  const created = await world.kube.create(resources.volumeAttachments, va, { signal });
  await world.kube.updateStatus(
    resources.volumeAttachments,
    { ...created, status: { attached: true } },
    { signal },
  );
  await expect(world.clock.run(run(world, "migrate"))).rejects.toMatchObject({
    name: "ContractError",
    signs: [{ rule: "C1", object: `PersistentVolume ${name}` }],
  });
  expect(await world.platform.controlPlaneGates(signal)).toEqual({});
  expect(await cordoned(world)).toEqual([]);
});
