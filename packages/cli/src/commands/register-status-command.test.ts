import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { main } from "../main.ts";

let err = "";
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  err = "";
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
});

it.each<readonly [string, readonly string[], number, string]>([
  ["no cluster", [], 2, "--kubeconfig: which cluster?"],
  ["a kubeconfig that is not there", ["--kubeconfig", "/nowhere/config"], 1, "/nowhere/config"],
  ["an unknown form", ["-o", "xml"], 2, "xml"],
])("ends for %s", async (_what, flags, code, words) => {
  process.exitCode = undefined;
  await main(["node", "longshore", "status", ...flags]);
  expect(err).toContain(words);
  expect(process.exitCode).toBe(code);
});
