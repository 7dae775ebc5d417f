import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestApiServer } from "@longshore/apiserver";
import { resources } from "@longshore/kube";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { main } from "../main.ts";
import { kubeconfigPath } from "./register-complete-command.ts";

let dir: string;
let said: string;
const environment = { ...process.env };
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longshore-complete-"));
  said = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    said += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  process.env = { ...environment };
  process.exitCode = undefined;
  rmSync(dir, { recursive: true, force: true });
});

const complete = (...args: readonly string[]) => main(["node", "longshore", "complete", ...args]);

test("the names of the cluster that the line is about, and none that a shell would expand", async () => {
  const server = await startTestApiServer();
  const signal = new AbortController().signal;
  await server.client.create(
    resources.nodes,
    { apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } },
    { signal },
  );
  writeFileSync(join(dir, "kubeconfig"), server.kubeconfig);
  await complete("nodes", "--", "cluster", "node", "restart", "--dir", dir);
  expect(said).toBe("node-1\n");
  said = "";
  await complete("namespaces", "--", "driver", "install", `--kubeconfig=${dir}/kubeconfig`);
  expect(said.split("\n")).toContain("kube-system");
  await server.stop();
});

test("the codes of findings, without a cluster", async () => {
  await complete("codes", "--", "explain");
  expect(said.split("\n")).toContain("LS1103");
});

test("a cluster that does not answer is silence, soon", async () => {
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as { readonly port: number };
  const config = {
    clusters: [{ name: "c", cluster: { server: `https://127.0.0.1:${port}` } }],
    users: [{ name: "u", user: {} }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(join(dir, "kubeconfig"), JSON.stringify(config));
  const startedMs = performance.now();
  await complete("nodes", "--", "cluster", "node", "kill", "--dir", dir);
  expect([said, process.exitCode]).toEqual(["", undefined]);
  expect(performance.now() - startedMs).toBeLessThan(5000);
  silent.close();
});

test("no cluster, no file, no kubeconfig: silence", async () => {
  await complete("nodes", "--", "cluster", "node", "kill", "--dir", `${dir}/none`);
  writeFileSync(join(dir, "kubeconfig"), "no: kubeconfig: at all");
  await complete("nodes", "--", "cluster", "node", "kill", "--dir", dir);
  expect([said, process.exitCode]).toEqual(["", undefined]);
});

test("which kubeconfig", () => {
  process.env.XDG_STATE_HOME = dir;
  process.env.KUBECONFIG = "/k";
  expect(kubeconfigPath(["driver", "install"])).toBe("/k");
  expect(kubeconfigPath(["driver", "install", "--kubeconfig", "/a"])).toBe("/a");
  expect(kubeconfigPath(["cluster", "node", "kill", "--dir=/d"])).toBe("/d/kubeconfig");
  expect(kubeconfigPath(["cluster", "node", "kill"])).toBeUndefined();
  // A crossing is one of the local cluster, unless its flags say otherwise.
  expect(kubeconfigPath(["migrate", "--only-node"])).toBeUndefined();
  expect(kubeconfigPath(["rollback", "--platform", "manual", "--only-node"])).toBe("/k");
});
