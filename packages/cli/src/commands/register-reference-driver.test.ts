import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { main } from "../main.ts";

let said: { out: string; err: string };
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  process.exitCode = undefined;
  said = { out: "", err: "" };
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    said.out += String(text);
    return true;
  });
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    said.err += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = exitCode;
});

const run = (...args: readonly string[]) => main(["node", "longshore", "run", "reference-driver", ...args]);
const places = ["--endpoint", "unix:///tmp/nowhere/csi.sock", "--state-dir", "/tmp/nowhere/state"];

test.each([
  ["no endpoint", ["--state-dir", "/tmp/nowhere"], "--endpoint is required"],
  ["no state directory", ["--endpoint", "unix:///tmp/nowhere/csi.sock"], "--state-dir is required"],
  ["an unknown fault", [...places, "--fault", "sloth"], "there is no fault sloth"],
  ["a name that is none", [...places, "--name", "-x-"], "is not the name of a driver"],
  ["an empty node id", [...places, "--node-id", ""], "--node-id"],
  ["no topology", [...places, "--topology", "zone"], '"zone" is not key=value'],
  ["two topology keys", [...places, "--topology", "a=b", "--topology", "c=d"], "has one topology key"],
  ["a size that is none", [...places, "--capacity", "much"], '"much" is not a size'],
  ["a number that is none", [...places, "--max-volumes", "0"], "is not a number of volumes"],
  ["an unknown mode", [...places, "--mode", "cloud"], "loop, directory"],
])("%s is wrong usage", async (_what, args, words) => {
  await run(...args);
  expect(said.err).toContain(words);
  expect(said.out).toBe("");
  expect(process.exitCode).toBe(2);
});

test("--fault list names all rules, each with what it breaks", async () => {
  await run("--fault", "list");
  expect(said.out).toMatch(/^list-repeats-entries\tListVolumes gives/m);
  expect(said.out.trimEnd().split("\n").length).toBeGreaterThan(45);
  expect(process.exitCode ?? 0).toBe(0);
});
