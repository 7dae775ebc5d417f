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
