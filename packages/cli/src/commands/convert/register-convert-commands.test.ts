import { loadAll } from "js-yaml";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { main } from "../../main.ts";

let err = "";
let out = "";
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  err = "";
  out = "";
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
});

async function run(...words: readonly string[]) {
  process.exitCode = undefined;
  await main(["node", "longshore", "convert", ...words]);
  return process.exitCode;
}

it.each<readonly [string, readonly string[], string]>([
  ["a run without a choice", ["run"], "--all: which volumes?"],
  ["an undo without a choice", ["undo"], "--all: which volumes?"],
  ["an unknown plugin", ["plan", "--plugin", "aws-efs"], "choose one of aws-ebs"],
  ["a driver without rules", ["plan", "--from-driver", "a"], "--rules: volumes of a driver need a file"],
  [
    "rules that cannot be read",
    ["plan", "--rules", "/no/such/file"],
    "--rules /no/such/file: it cannot be read",
  ],
  [
    "an end of names without objects",
    ["plan", "--class-suffix", "-csi"],
    "it is for --classes and --templates",
  ],
  [
    "an end of names that is none",
    ["run", "--classes", "--class-suffix", "A_"],
    "--class-suffix: small letters",
  ],
  ["no volume at a time", ["run", "--all", "--parallel", "0"], "--parallel:"],
  [
    "a local cluster with a kubeconfig",
    ["status", "--dir", "d", "--kubeconfig", "f"],
    "--dir: that is a local cluster",
  ],
])("%s is wrong usage", async (_words, words, expected) => {
  expect(await run(...words)).toBe(2);
  expect(err).toContain(expected);
  expect(out).toBe("");
});

it("prints its rights without a cluster", async () => {
  expect(await run("run", "--print-rbac")).toBeUndefined();
  const kinds = loadAll(out).map((role) => (role as { readonly kind: string }).kind);
  expect(kinds).toEqual(["ClusterRole", "Role"]);
  expect(out).toContain("persistentvolumes");
  expect(out).toContain("storageclasses");
});
