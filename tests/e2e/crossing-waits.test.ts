/**
 * A crossing that cannot go on says so: before it begins, while it waits, or when it stops; and what it leaves.
 * Real processes, and a command without a terminal.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { resources } from "@longshore/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { longshore, type Outcome } from "./support/run-command.ts";
import { longshoreCommand, TestCluster } from "./support/test-cluster.ts";

const never = new AbortController().signal;
let cluster: TestCluster;
beforeAll(async () => {
  cluster = await TestCluster.up();
});
afterAll(() => cluster.down());

const migrate = (...flags: string[]) => ["migrate", "--plugin", "aws-ebs", "--dir", cluster.dir, ...flags];
const node = () => cluster.kube.get(resources.nodes, { name: "node-1" }, { signal: never });
const isCordoned = async () => (await node())?.spec?.unschedulable === true;
const status = async () =>
  JSON.parse((await longshore("cluster", "status", "--json", "--dir", cluster.dir)).out);
const patchBudget = (maxUnavailable: number) =>
  cluster.kube.patch(
    resources.podDisruptionBudgets,
    { namespace: "default", name: "writer" },
    { type: "merge", body: { spec: { maxUnavailable } } },
    { signal: never },
  );
const setFinalizers = (finalizers: string[]) =>
  cluster.kube.patch(
    resources.pods,
    { namespace: "default", name: "writer-0" },
    { type: "merge", body: { metadata: { finalizers } } },
    { signal: never },
  );

/** Starts the command; `said` resolves once its stderr has the text. */
function start(...args: readonly string[]): {
  readonly child: ChildProcess;
  readonly ended: Promise<Outcome>;
  said(text: string): Promise<void>;
} {
  const [program = "", ...first] = longshoreCommand;
  const child = spawn(program, [...first, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const outcome = { code: null as number | null, out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    outcome.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    outcome.err += text;
  });
  return {
    child,
    ended: new Promise((resolve) => child.on("close", (code) => resolve({ ...outcome, code }))),
    said: (text) => cluster.until(`"${text}" is said`, async () => outcome.err.includes(text)),
  };
}

test("a budget that allows no disruption is found before anything is changed", async () => {
  await patchBudget(0);
  const observed = async () => {
    const ref = { namespace: "default", name: "writer" };
    const budget = await cluster.kube.get(resources.podDisruptionBudgets, ref, { signal: never });
    return budget?.status?.observedGeneration === budget?.metadata.generation;
  };
  await cluster.until("the budget is looked at", observed);
  const words =
    /PodDisruptionBudget default\/writer \(status\.disruptionsAllowed\): it allows no disruption: 1 of 1 pods must be healthy, 1 is, and it covers Pod default\/writer-0.*spec\.maxUnavailable/;
  for (const flags of [[], ["--dry-run"]]) {
    const { code, out, err } = await longshore(...migrate(...flags));
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(words);
  }
  const json = await longshore(...migrate("--dry-run", "--json"));
  expect(json.code).toBe(1);
  expect(JSON.parse(json.out)).toMatchObject({
    blockers: [{ object: "PodDisruptionBudget default/writer", field: "status.disruptionsAllowed" }],
    warnings: [],
  });
  expect(await isCordoned()).toBe(false);
  await patchBudget(1);
  await cluster.until("the budget is looked at", observed);
  expect((await longshore(...migrate("--dry-run"))).out).toBe("preflight found no problem\n");
});

test("a wait is said at once and every 30 s, and given up with its reason, code 3 and what is left", async () => {
  await setFinalizers(["example.com/stay"]);
  const { ended, said } = start(...migrate("--step-timeout", "33s"));
  await said("node-1: drain waits for Pod default/writer-0 (");
  const running = await status();
  expect(running.crossing).toMatchObject({
    state: "running",
    direction: "migrate",
    by: { pid: expect.any(Number), user: expect.any(String), host: expect.any(String) },
    step: { name: "drain", nodeName: "node-1" },
    waiting: { subjects: [{ kind: "Pod", namespace: "default", name: "writer-0" }] },
  });
  const { code, out, err } = await ended;
  expect({ code, out }).toEqual({ code: 3, out: "" });
  const reason = /should have ended at [^;]*; metadata\.finalizers still has example\.com\/stay/;
  expect(err).toMatch(
    new RegExp(
      `drain waits for Pod default/writer-0 \\(${reason.source}\\), for \\d+ s now; given up in \\d+ s`,
    ),
  );
  expect(err).toMatch(
    new RegExp(
      `longshore: "drain" on node node-1 still waits after 33 s for Pod default/writer-0 \\(${reason.source}`,
    ),
  );
  expect(err).toContain("feature gates: control plane csi, node-1 in-tree");
  expect(err).toContain("node-1 stays cordoned; it is uncordoned when the crossing of it ends");
  expect(err).toContain(`journal ${cluster.dir}/crossing.json: migrate begun, nodes done: none`);
  expect(err).toContain(`go on:     longshore migrate --plugin aws-ebs --dir ${cluster.dir}`);
  expect(err).toContain(`go back:   longshore rollback --plugin aws-ebs --dir ${cluster.dir}`);
  expect(await isCordoned()).toBe(true);
  expect((await status()).crossing).toMatchObject({
    state: "interrupted",
    interruption: { how: "timedOut" },
  });
  const text = (await longshore("cluster", "status", "--dir", cluster.dir)).out;
  expect(text).toMatch(/^CROSSING +migrate kubernetes\.io\/aws-ebs: interrupted, 0 of 1 nodes done$/m);
  expect(text).toMatch(/^INTERRUPTED +a step took too long, /m);
  expect(text).toMatch(/^WAITING FOR +Pod default\/writer-0 \(should have ended/m);
  expect(text).toMatch(/^BY +\S+@\S+, process \d+$/m);
});

test("Ctrl-C says what is left, and gives the node back where that was asked for", async () => {
  const { child, ended, said } = start(...migrate("--uncordon-on-abort", "--json"));
  await said('"kind":"waiting","step":"drain"');
  child.kill("SIGINT");
  const { code, out, err } = await ended;
  expect(code).toBe(130);
  expect(JSON.parse(out)).toMatchObject({
    outcome: "interrupted",
    left: {
      controlPlane: "csi",
      nodes: [{ name: "node-1", served: "in-tree", cordoned: false, uncordoned: true }],
      resume: `longshore migrate --plugin aws-ebs --dir ${cluster.dir}`,
    },
  });
  for (const line of err.trimEnd().split("\n")) expect(JSON.parse(line)).toHaveProperty("kind");
  expect(await isCordoned()).toBe(false);
  expect((await status()).crossing).toMatchObject({
    state: "interrupted",
    interruption: { how: "interrupted" },
  });
});

test("one that was killed shows as gone; with the obstacle removed, running it again ends well", async () => {
  const { child, ended, said } = start(...migrate());
  await said("node-1: drain waits for Pod default/writer-0");
  // The step's note is written in parallel with the run: it may come to the disk a moment after the line.
  await expect.poll(async () => (await status()).crossing?.step?.name, { timeout: 20_000 }).toBe("drain");
  child.kill("SIGKILL");
  await ended;
  expect((await status()).crossing).toMatchObject({
    state: "interrupted",
    step: { name: "drain" },
    interruption: { how: "gone" },
  });
  await setFinalizers([]);
  const { code, out } = await longshore(...migrate());
  expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining("(resumed)") });
  expect((await status()).crossing).toMatchObject({ state: "finished", nodesDone: ["node-1"] });
  await cluster.writerRuns();
  await cluster.expectNothingLost();
});
