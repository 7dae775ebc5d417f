import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadAll } from "js-yaml";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { main } from "../../main.ts";

let dir: string;
let err = "";
let out = "";
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  err = "";
  out = "";
  dir = mkdtempSync(join(tmpdir(), "ls-migrate-"));
  vi.stubEnv("KUBECONFIG", "");
  vi.stubEnv("KUBERNETES_SERVICE_HOST", undefined);
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    err += String(text);
    return true;
  });
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = exitCode;
  rmSync(dir, { recursive: true, force: true });
});

async function run(...words: readonly string[]) {
  process.exitCode = undefined;
  await main(["node", "longshore", ...words]);
  return process.exitCode;
}

const plan = (direction: string, plugin = "kubernetes.io/aws-ebs") =>
  `version: 1\nclusterId: c\nplugin: ${plugin}\ndirection: ${direction}\nmadeAt: "2026-01-01T12:00:00Z"\nmaxUnavailable: 1\nnodesRolledBy: crossing\nnodes: []\nsteps: []\nexpectedSeconds: 0\nfindings: []\n`;

it.each<readonly [string, readonly string[], string]>([
  ["neither plan nor plugin", [], "--plugin: which plugin?"],
  ["an unknown plugin", ["--plugin", "aws-efs"], "choose one of aws-ebs"],
  ["an unknown platform", ["--plugin", "aws-ebs", "--platform", "gke"], "gke"],
  [
    "a local cluster with a kubeconfig",
    ["--plugin", "aws-ebs", "--platform", "embedded", "--kubeconfig", "f"],
    "--platform: embedded",
  ],
  [
    "another cluster with a directory",
    ["--plugin", "aws-ebs", "--platform", "manual", "--dir", "d"],
    "--dir: that is a local cluster",
  ],
  [
    "kubeadm without its command",
    ["--plugin", "aws-ebs", "--platform", "kubeadm"],
    "--node-command: it goes with",
  ],
  [
    "a command of no platform",
    ["--plugin", "aws-ebs", "--node-command", "ssh {node}"],
    "--node-command: it goes with",
  ],
  [
    "gardener without its Shoot",
    ["--plugin", "aws-ebs", "--platform", "gardener"],
    "--shoot, --garden-kubeconfig",
  ],
  ["no cluster", ["--plugin", "aws-ebs", "--platform", "manual"], "--kubeconfig: which cluster?"],
  ["no nodes at a time", ["--plugin", "aws-ebs", "--max-unavailable", "0"], "--max-unavailable"],
  ["a pause after no batch", ["--plugin", "aws-ebs", "--pause-after", "x"], "--pause-after"],
])("refuses %s as wrong usage", async (_what, flags, words) => {
  expect(await run("migrate", ...flags)).toBe(2);
  expect(err).toContain(words);
});

it("refuses a plan of the other way, one beside a plugin, and what is none", async () => {
  const file = join(dir, "plan.yaml");
  writeFileSync(file, plan("rollback"));
  expect(await run("migrate", file)).toBe(2);
  expect(err).toContain("run it with longshore rollback");
  expect(await run("rollback", file, "--plugin", "aws-ebs")).toBe(2);
  expect(err).toContain("the plan names it");
  writeFileSync(file, `${plan("migrate")}---\n${plan("migrate")}`);
  expect(await run("migrate", file)).toBe(1);
  expect(err).toContain("kubernetes.io/aws-ebs is planned twice");
  writeFileSync(file, `${plan("migrate")}---\n${plan("rollback", "kubernetes.io/cinder")}`);
  expect(await run("migrate", file)).toBe(1);
  expect(err).toContain("plans of one file go the same way");
  writeFileSync(file, plan("migrate").replace("maxUnavailable: 1", "maxUnavailable: none"));
  expect(await run("migrate", file)).toBe(1);
  expect(err).toContain("(field maxUnavailable)");
  writeFileSync(file, "");
  expect(await run("migrate", file)).toBe(1);
  expect(err).toContain("there is no plan in it");
});

it("prints its rights, of OpenShift more", async () => {
  const printed = async (...flags: readonly string[]) => {
    out = "";
    expect(await run("migrate", "--print-rbac", ...flags)).toBeUndefined();
    return loadAll(out) as {
      readonly kind: string;
      readonly rules: readonly { readonly resources: readonly string[] }[];
    }[];
  };
  const plain = await printed();
  expect(plain.map(({ kind }) => kind)).toEqual(["ClusterRole", "Role"]);
  expect(plain.flatMap(({ rules }) => rules.flatMap(({ resources }) => resources))).not.toContain("secrets");
  const openshift = await printed("--platform", "openshift");
  expect(openshift[0]?.rules.flatMap(({ resources }) => resources)).toContain("featuregates");
});
