import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { main } from "../main.ts";

let dir: string;
let said: { out: string; err: string };
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  dir = mkdtempSync(join(tmpdir(), "ls-assess-"));
  said = { out: "", err: "" };
  vi.stubEnv("KUBECONFIG", "");
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
  vi.unstubAllEnvs();
  process.exitCode = exitCode;
  rmSync(dir, { recursive: true, force: true });
});

async function longshore(...words: readonly string[]): Promise<number> {
  process.exitCode = undefined;
  await main(["node", "longshore", ...words]);
  return Number(process.exitCode ?? 0);
}

const storage = "storage.k8s.io/v1";
const node = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n1" },
  status: { nodeInfo: { kubeletVersion: "v1.20.2" } },
};
const csiNode = { apiVersion: storage, kind: "CSINode", metadata: { name: "n1" }, spec: { drivers: [] } };
const pv = {
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "pv1" },
  spec: { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-0123456789abcdef0", fsType: "ext4" } },
};
const claim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "c1", namespace: "default" },
  spec: {},
};
const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p1", namespace: "default" }, spec: {} };
const listOf = (...items: readonly object[]) => JSON.stringify({ apiVersion: "v1", kind: "List", items });

describe("longshore assess", () => {
  it("judges a tree of files for now and for a target, in several forms", async () => {
    mkdirSync(join(dir, "cluster", "core"), { recursive: true });
    writeFileSync(join(dir, "cluster", "core", "nodes.json"), listOf(node, claim, pod));
    writeFileSync(join(dir, "cluster", "storage.json.gz"), gzipSync(listOf(csiNode, pv)));
    writeFileSync(join(dir, "cluster", "kubelet.log"), "{ no manifest");
    const dump = ["assess", "-f", join(dir, "cluster")];
    expect(await longshore(...dump)).toBe(0);
    expect(said.out).toContain("now     Kubernetes 1.20: READY");
    said.out = "";
    expect(await longshore(...dump, "--json")).toBe(0);
    expect(JSON.parse(said.out)).toMatchObject({ now: { verdict: "READY" } });
    const file = join(dir, "report.json");
    expect(await longshore(...dump, "--target-version", "1.27", "-o", "table", "-o", `json=${file}`)).toBe(2);
    expect(said.out).toContain("target  Kubernetes 1.27: NOT READY");
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
      now: { verdict: "READY" },
      target: { verdict: "NOT READY" },
      findings: [{ code: "LS1101", when: "target" }, {}, {}],
    });
  });

  it("takes suppressions, and says what has changed since a report", async () => {
    const dump = join(dir, "dump.json");
    writeFileSync(dump, listOf(node, csiNode, pv, claim, pod));
    const judge = ["assess", "-f", dump, "--target-version", "1.27"];
    const before = join(dir, "before.json");
    expect(await longshore(...judge, "-o", `json=${before}`)).toBe(2);
    const file = join(dir, "accepted.yaml");
    const until = "until: 2999-01-01";
    writeFileSync(file, `suppressions:\n  - {code: LS1101, reason: it comes, ${until}}\n`);
    said.out = "";
    expect(await longshore(...judge, "--suppressions", file, "--diff", before)).toBe(0);
    expect(said.out).toContain("suppressed: 1;");
    expect(said.out).toContain("gone: 1\n  - LS1101");
    expect(await longshore(...judge, "--suppressions", before)).toBe(3);
    expect(said.err).toContain(`--suppressions: ${before}: \`suppressions\` is missing`);
    expect(await longshore(...judge, "--diff", join(dir, "gone.json"))).toBe(3);
    expect(said.err).toContain("--diff: cannot read");
  });

  it("prints the schema of its JSON", async () => {
    expect(await longshore("assess", "--print-schema")).toBe(0);
    expect(JSON.parse(said.out)).toMatchObject({ properties: { kind: { const: "Assessment" } } });
  });

  it.each<readonly [string, readonly string[], string]>([
    ["no cluster", [], "--kubeconfig: which cluster?"],
    ["a file that is not there", ["-f", "gone.json"], "cannot read gone.json"],
    ["an unknown form", ["-f", "x", "-o", "pdf"], '--output: "pdf" is not one of table'],
    ["two forms on one output", ["-f", "x", "-o", "json", "-o", "yaml"], "only one form"],
    ["no version", ["-f", "x", "--target-version", "next"], '--target-version: "next" is not a version'],
    ["an unknown flag", ["--nonsense"], "--nonsense"],
    [
      "figures without watching",
      ["-f", "x", "--metrics-address", ":1"],
      "--metrics-address: give it with --watch",
    ],
    ["a dump that is to be followed", ["-f", "x", "--watch"], "--filename: it does not go with --watch"],
    ["forms while following", ["--watch", "-o", "json"], "--output: it does not go with --watch"],
    [
      "no template path",
      ["-f", "x", "--template-path", "jobs"],
      '--template-path: "jobs" is not GROUP/VERSION',
    ],
  ])("ends with the code of no verdict for %s", async (_what, flags, words) => {
    expect(await longshore("assess", ...flags)).toBe(3);
    expect(said.err).toContain(words);
  });

  it("prints the role it needs: lists, and Secrets only on request", async () => {
    expect(await longshore("assess", "--print-rbac")).toBe(0);
    expect(said.out).toContain("kind: ClusterRole");
    expect(said.out).not.toContain("secrets");
    expect(await longshore("assess", "--print-rbac", "--check-secrets")).toBe(0);
    expect(said.out).toContain("- secrets");
    expect(said.out).not.toContain("- watch");
    said.out = "";
    const templates = ["--template-path", "argoproj.io/v1alpha1/rollouts:.spec.template"];
    expect(await longshore("assess", "--print-rbac", "--watch", ...templates)).toBe(0);
    expect(said.out).toContain("- watch");
    expect(said.out).toContain("- rollouts");
  });
});

describe("longshore explain", () => {
  it("says what a code means, and lists all of them", async () => {
    expect(await longshore("explain", "ls1103")).toBe(0);
    expect(said.out).toMatch(/^LS1103 \(error\): a volume is in use on a node without its driver\n/);
    expect(await longshore("explain")).toBe(0);
    expect(said.out).toContain("LS1801");
  });

  it("gives JSON with -o json and with --json, of one code and of all", async () => {
    const read = async (...words: string[]): Promise<unknown> => {
      said.out = "";
      expect(await longshore("explain", ...words)).toBe(0);
      return JSON.parse(said.out);
    };
    const one = await read("LS1103", "-o", "json");
    expect(one).toMatchObject({ code: "LS1103", severity: "error", remedy: expect.any(String) });
    expect(await read("LS1103", "--json")).toEqual(one);
    expect(await read("--json")).toContainEqual(one);
  });

  it("refuses a code that is not there", async () => {
    expect(await longshore("explain", "LS9999")).toBe(2);
    expect(said.err).toContain('"LS9999" is not a code');
  });
});
