import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { main } from "../../main.ts";

let printed: string;
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
});
afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = exitCode;
});

async function skew(...words: readonly string[]): Promise<number> {
  process.exitCode = undefined;
  await main(["node", "longshore", "sim", "skew", "--plugin", "aws-ebs", "--nodes", "1", ...words]);
  return Number(process.exitCode ?? 0);
}

it("prints how many orders are safe, and tables of combinations", { timeout: 180_000 }, async () => {
  expect(await skew("--mode", "node-only", "--part", "orders", "--part", "combinations")).toBe(0);
  const lines = printed.split("\n").map((line) => line.replace(/ +/g, " "));
  expect(lines[0]).toBe("node-only: the attach/detach controller goes by what the node states alone");
  expect(lines).toContain("aws-ebs off on in-tree csi csi");
  expect(lines).toContain("all gates off again: 4/4 orders keep all work going");
});

it("makes orders of these numbers again, and says where work stands still", async () => {
  expect(await skew("--mode", "upstream", "--orders", "1..2")).toBe(0);
  const lines = printed.split("\n");
  // Off again in the same order: the controller manager before its node.
  expect(lines).toContain("order 1: work stands still from flip 3 on");
  expect(lines).toContain("  (!) controller manager: aws-ebs off");
  expect(lines).toContain("order 2: work stands still from flip 1 on");
  expect(printed).toContain("its migration to ebs.csi.aws.com is not enabled in the controller");
});

it("prints each result as a line of JSON", async () => {
  expect(await skew("--mode", "node-only", "--orders", "2", "--json")).toBe(0);
  const [line, end] = printed.split("\n");
  expect(end).toBe("");
  expect(JSON.parse(line ?? "")).toMatchObject({
    part: "order",
    number: 2,
    violations: [],
    steps: [
      { component: "node-1", plugin: "aws-ebs", isOn: true, isDrained: true, stalls: [] },
      { component: "controller manager", isOn: true },
      { component: "node-1", isOn: false },
      { component: "controller manager", isOn: false },
    ],
  });
});
