import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { main } from "../main.ts";
import { planText } from "./plan-report.ts";

let dir: string;
let err = "";
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  err = "";
  dir = mkdtempSync(join(tmpdir(), "ls-plan-"));
  vi.stubEnv("KUBECONFIG", "");
  vi.stubEnv("KUBERNETES_SERVICE_HOST", undefined);
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    err += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = exitCode;
  rmSync(dir, { recursive: true, force: true });
});

async function plan(...flags: readonly string[]) {
  process.exitCode = undefined;
  await main(["node", "longshore", "plan", ...flags]);
  return process.exitCode;
}

it.each<readonly [string, readonly string[], string]>([
  ["no plugin", [], "--plugin: which plugin?"],
  ["an unknown plugin", ["--plugin", "nfs"], '"nfs" is not a plugin'],
  [
    "a way back on Gardener",
    ["--plugin", "aws-ebs", "--platform", "gardener", "--direction", "rollback"],
    "Gardener has no way back",
  ],
  ["no cluster", ["--plugin", "aws-ebs"], "--kubeconfig: which cluster?"],
  ["an unknown way", ["--plugin", "aws-ebs", "--direction", "up"], "up"],
])("refuses %s as wrong usage", async (_what, flags, words) => {
  expect(await plan(...flags)).toBe(2);
  expect(err).toContain(words);
});

it("refuses to check what is no plan, or is not there", async () => {
  const file = join(dir, "plan.yaml");
  expect(await plan("--check", file)).toBe(1);
  expect(err).toContain("ENOENT");
  writeFileSync(file, "version: 2\n");
  expect(await plan("--check", file)).toBe(1);
  expect(err).toContain("it is not a plan of version 1");
});

it("shows findings and steps, with what servers say made harmless", () => {
  const text = planText({
    version: 1,
    clusterId: "c",
    plugin: "kubernetes.io/aws-ebs",
    direction: "migrate",
    madeAt: "2026-01-01T12:00:00Z",
    maxUnavailable: 2,
    nodesRolledBy: "crossing",
    nodes: [{ name: "n1", uid: "u1", batch: 1 }],
    steps: [
      {
        name: "drain",
        nodeName: "n1",
        batch: 1,
        before: "b",
        changes: ["Pod default/p: evicted"],
        after: "a\u001b",
        expectedSeconds: 30,
      },
    ],
    expectedSeconds: 750,
    findings: [{ severity: "blocker", object: "Node n1", reason: "it is not ready", remedy: "wait" }],
  });
  expect(text.split("\n")).toEqual([
    "migrate kubernetes.io/aws-ebs in cluster c, planned at 2026-01-01T12:00:00Z",
    "1 nodes, at most 2 at a time; about 13 min where no budget and no provider holds it up",
    "blocker: Node n1: it is not ready; wait",
    "1. n1: drain (batch 1), about 30 s",
    "   before: b",
    "   change: Pod default/p: evicted",
    "   after:  a\\x1b",
    "",
  ]);
});
