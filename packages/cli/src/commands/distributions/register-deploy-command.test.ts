/** What `longshore deploy` writes, `longshore run` understands; what cannot be is said in the words of its flags. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadAll } from "js-yaml";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { main } from "../../main.ts";
import type { FlagTable } from "../sidecars/flag-table.ts";
import { readGoArguments } from "../sidecars/read-go-arguments.ts";
import { featureGateOperatorFlags } from "./register-feature-gate-operator.ts";
import { migrationControllerFlags } from "./register-migration-controller.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of any kind
type Loose = any;

let said: { out: string; err: string };
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  said = { out: "", err: "" };
  for (const [stream, key] of [
    [process.stdout, "out"],
    [process.stderr, "err"],
  ] as const) {
    vi.spyOn(stream, "write").mockImplementation((text) => {
      said[key] += String(text);
      return true;
    });
  }
});
afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = exitCode;
});

async function deploy(...words: readonly string[]): Promise<number> {
  process.exitCode = undefined;
  await main(["node", "longshore", "deploy", ...words]);
  return Number(process.exitCode ?? 0);
}

const operator = ["feature-gate-operator", "--kubernetes", "1.21"];
const controller = [
  ...["migration-controller", "--provider-type", "aws", "--csi-migration-kubernetes-version", "1.18"],
  ...["--legacy-storage-classes", "default:kubernetes.io/aws-ebs"],
];

it.each<[readonly string[], FlagTable]>([
  [operator, featureGateOperatorFlags],
  [controller, migrationControllerFlags],
])("%j: the command line in the Deployment is understood", async (words, table) => {
  expect(await deploy(...words)).toBe(0);
  const objects = loadAll(said.out) as Loose[];
  const deployment = objects.find(({ kind }) => kind === "Deployment");
  const [run, verb, ...args] = deployment.spec.template.spec.containers[0].args;
  expect([run, verb]).toEqual(["run", words[0]]);
  const { rest, values } = readGoArguments(table, args);
  expect(rest).toEqual([]);
  expect(values.get("leader-election")).toBe(true);
  expect(objects.some(({ kind }) => kind === "CustomResourceDefinition")).toBe(false);
});

it("with --crds the definitions come first", async () => {
  expect(await deploy(...controller, "--crds")).toBe(0);
  const kinds = (loadAll(said.out) as Loose[]).map(({ kind, spec }) => spec?.names?.kind ?? kind);
  expect(kinds.slice(0, 3)).toEqual(["Cluster", "ControlPlane", "Namespace"]);
});

describe("a chart", () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "ls-"));
  });
  afterEach(() => rm(dir, { recursive: true }));

  it("is written with its definitions, and not over one that is there", async () => {
    const words = [...operator, "--crds", "-o", "helm", "--output-dir", dir];
    expect(await deploy(...words)).toBe(0);
    expect(await readFile(join(dir, "crds/featuregates.yaml"), "utf8")).toContain("FeatureGate");
    expect(await readFile(join(dir, "Chart.yaml"), "utf8")).toContain("longshore-feature-gate-operator");
    expect(said.out).toContain("helm install longshore-feature-gate-operator");
    expect(await deploy(...words)).toBe(2);
    expect(said.err).toContain("is there already");
    expect(await deploy(...words, "--force")).toBe(0);
  });
});

it.each<[readonly string[], string]>([
  [["feature-gate-operator", "--kubernetes", "new"], '--kubernetes: Kubernetes version "new"'],
  [[...operator, "--plugins", "aws-ebs"], '--plugins: "aws-ebs" is no plugin that migrates'],
  [[...operator, "--image", "Not An Image"], '--image: "Not An Image" is not an image reference'],
  [[...operator, "--replicas", "0"], "--replicas"],
  [[...operator, "-o", "helm"], "--output-dir: where is the chart to be written?"],
  [[...operator, "--output-dir", "x"], "--output-dir: is for -o helm"],
  [[...controller.slice(0, 4), "soon"], '--csi-migration-kubernetes-version: "soon" is not a version'],
  [[...controller.slice(0, 6), "default"], "--legacy-storage-classes: write key:value,key:value"],
  [[...controller, "--provider-type", "A"], '--provider-type: "A" names no objects'],
])("%j is wrong usage", async (words, message) => {
  expect(await deploy(...words)).toBe(2);
  expect(said.err).toContain(message);
  expect(said.out).toBe("");
});
