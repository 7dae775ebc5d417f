import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { main } from "../../main.ts";

let printed = "";
let dir = "";

beforeEach(async () => {
  printed = "";
  dir = await mkdtemp(join(tmpdir(), "longshore-sim-"));
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += text;
    return true;
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  process.exitCode = undefined;
  await rm(dir, { recursive: true });
});

const sim = (...words: string[]) => main(["node", "longshore", "sim", ...words]);

it("prints the story of a seed up to a step, with the state of the cluster after it", async () => {
  await sim("--seed", "7", "--trace", "--until", "300");
  expect(printed).toMatch(
    /^ +\d+\.\d{3} s {2}step \d+ +vol-\S+ is attached to node-\d by the in-tree code$/m,
  );
  expect(printed).toMatch(/step 300 +at the end: node-1 ready=/);
  expect(printed).toMatch(/^ {2}300 steps, /m);
});

it("writes a page that shows who held which disk when", async () => {
  const file = join(dir, "timeline.html");
  await sim("--seed", "7", "--timeline", file);
  expect(await readFile(file, "utf8")).toMatch(/<title>Seed 7, 2 nodes: who held which disk when<\/title>/);
});

it("plays worlds of the swarm, and says what they have reached and what not", async () => {
  await sim("--world", "swarm", "--seeds", "3..4", "--coverage");
  expect(printed).toMatch(/^2 of 2 seeds kept the contract\nKIND +COUNT\n/);
  expect(printed).toMatch(/^drain +\d+$/m);
  expect(printed).toMatch(/^never reached: \w+/m);
  const table = printed;
  printed = "";
  await sim("--world", "swarm", "--seeds", "3..4", "--coverage", "--json");
  const [first, , last] = printed.trim().split("\n");
  expect(JSON.parse(first ?? "")).toMatchObject({ seed: 3, violations: [], plan: {}, counters: {} });
  const { coverage } = JSON.parse(last ?? "") as { coverage: { counts: Record<string, number> } };
  for (const [name, count] of Object.entries(coverage.counts)) {
    expect(table).toMatch(new RegExp(`^${name} +${count}$`, "m"));
  }
});

it("plays small worlds: a node or two, and one plugin", async () => {
  await sim("--world", "small", "--seeds", "1..3", "--json");
  const plans = printed
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { plan: { nodes: number; plugins: readonly string[] } }).plan);
  expect(plans).toHaveLength(3);
  for (const { nodes, plugins } of plans) {
    expect(nodes).toBeLessThanOrEqual(2);
    expect(plugins).toHaveLength(1);
  }
});

it("ends a world of the swarm after a step, with the state of its cluster", async () => {
  await sim("--world", "swarm", "--seed", "3", "--trace", "--until", "900");
  expect(printed).toMatch(/step 900 +at the end: node-1 ready=/);
  expect(printed).toMatch(/^ {2}900 steps, \d+ operations, \d+ faults, /m);
});

it("plays conversions, with their story", async () => {
  await sim("--world", "conversion", "--seed", "3", "--trace");
  expect(printed).toMatch(/step \d+ +the operator dies at its call /);
  expect(printed).toMatch(/step \d+ +the conversion is done with pvc-/);
  expect(printed).toMatch(/^seed 3 kept the contract$/m);
});

it.each([
  [
    ["--world", "swarm", "--nodes", "2"],
    "--nodes: not with --world swarm, each seed draws how many there are",
  ],
  [["--world", "swarm", "--timeline", "x.html"], "--timeline: not with --world swarm"],
  [["--world", "conversion", "--trace", "--until", "9"], "--until: not with --world conversion"],
  [["--coverage"], "--coverage: not with --world crossing"],
])("refuses what the world cannot follow: %s", async (words, why) => {
  let said = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    said += text;
    return true;
  });
  await sim(...words);
  expect(said).toContain(why);
  expect(process.exitCode).toBe(2);
});
