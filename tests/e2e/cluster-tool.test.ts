/** The local cluster as a tool: the command's verbs, kubectl, and what is left when all of it is killed. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createHttpClient, loadKubeconfig, resources } from "@longshore/kube";
import { mayMount, type ProcessStatus, processEnv, processHost } from "@longshore/local";
import { silentLogger } from "@longshore/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "./support/free-port.ts";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { longshore, runProgram } from "./support/run-command.ts";
import { longshoreCommand, shortDirectory, writerScript } from "./support/test-cluster.ts";

/** Runs `longshore cluster …`, which must succeed; returns its stdout. */
async function cluster(dir: string, ...args: string[]): Promise<string> {
  const { code, out, err } = await longshore("cluster", ...args, "--dir", dir);
  expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
  return out;
}

interface Status {
  readonly processes: readonly ProcessStatus[];
  readonly nodes: readonly { readonly name: string; readonly ready: string; readonly attached: number }[];
  readonly volumes: readonly { readonly claim: string; readonly phase: string }[];
}
const status = async (dir: string) => JSON.parse(await cluster(dir, "status", "--json")) as Status;
const processOf = async (dir: string, name: string) =>
  (await status(dir)).processes.find((process) => process.name === name);

const kubectl = await runProgram(["kubectl", "version", "--client"]).then(
  ({ code }) => code === 0,
  () => false,
);
if (!kubectl) console.warn("there is no kubectl on this machine: its test is skipped");

describe("longshore cluster", () => {
  const dir = shortDirectory();
  beforeAll(async () => {
    expect(await cluster(dir, "up", "--detach", "--nodes", "1")).toBe(
      `export KUBECONFIG=${dir}/kubeconfig\n`,
    );
  });
  afterAll(() => {
    expect(machineStateBelow(dir)).toEqual(nothing);
    rmSync(dir, { recursive: true, force: true });
  });

  test("status, for people and for programs", async () => {
    const { processes, nodes } = await status(dir);
    expect(processes.filter((p) => !p.alive)).toEqual([]);
    expect(processes.map((p) => p.name).sort()).toEqual([
      "apiserver",
      "controller-manager",
      "csi-controller",
      "csi-node-node-1",
      "disk-cloud",
      "node-agent-node-1",
      "supervisor",
    ]);
    expect(nodes).toMatchObject([{ name: "node-1", ready: "True", attached: 0 }]);
    const text = await cluster(dir, "status");
    expect(text).toMatch(/^PROCESS +PID +STATE +RESTARTS$/m);
    expect(text).toMatch(/^node-agent-node-1 +\d+ +running +0$/m);
    expect(text).toMatch(/^node-1 +True +us-east-1a +- +0$/m);
  });

  test.skipIf(!kubectl)("kubeconfig, and kubectl with it", async () => {
    const file = (await cluster(dir, "kubeconfig")).trim();
    const { code, out } = await runProgram(["kubectl", "--kubeconfig", file, "get", "nodes"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^node-1 +Ready /m);
  });

  test.each([
    ["restart", /exit code 0/],
    ["kill", /SIGKILL/],
  ] as const)("node %s", async (verb, how) => {
    const before = await processOf(dir, "node-agent-node-1");
    await cluster(dir, "node", verb, "node-1");
    await expect
      .poll(() => processOf(dir, "node-agent-node-1"), { timeout: 20_000 })
      .toMatchObject({ alive: true, restarts: (before?.restarts ?? 0) + 1 });
    expect(await processOf(dir, "node-agent-node-1")).not.toMatchObject({ pid: before?.pid });
    const said = readFileSync(join(dir, "logs/supervisor.log"), "utf8");
    expect(said).toMatch(new RegExp(`node-agent-node-1 ended \\(${how.source}\\)`));
  });

  test("no second one in its directory, and no end of it from where its processes are not seen", async () => {
    const again = await longshore("cluster", "up", "--dir", dir);
    expect(again.code).toBe(1);
    expect(again.err).toMatch(/a cluster already runs in .* \(process [0-9]+\): use another --dir/);
    if (process.getuid?.() !== 0) return;
    const elsewhere = (...verb: string[]) =>
      runProgram([
        ...["unshare", "--pid", "--fork", "--mount-proc"],
        ...longshoreCommand,
        ...["cluster", ...verb, "--dir", dir],
      ]);
    const up = await elsewhere("up");
    expect(up.code).toBe(1);
    expect(up.err).toContain(`a cluster already runs in ${dir} (in another container)`);
    const down = await elsewhere("down");
    expect(down.code).toBe(1);
    expect(down.err).toContain("is in use by a process that cannot be seen from here");
    expect((await status(dir)).processes.every(({ alive }) => alive)).toBe(true);
  });

  test("gates, shown and set", async () => {
    expect(await cluster(dir, "gates")).not.toContain("CSIMigrationAWS");
    await cluster(dir, "gates", "controller-manager", "CSIMigrationAWS=true");
    await cluster(dir, "gates", "node-1", "CSIMigrationAWS=true");
    expect((await cluster(dir, "gates")).trim().split("\n")).toEqual([
      expect.stringMatching(/^controller-manager: .*\bCSIMigrationAWS\b/),
      expect.stringMatching(/^node-1: .*\bCSIMigrationAWS\b/),
    ]);
    // In effect when the command returns: the node says so.
    await expect
      .poll(() => cluster(dir, "status"), { timeout: 20_000 })
      .toMatch(/^node-1 +True +us-east-1a +kubernetes\.io\/aws-ebs /m);
    await cluster(dir, "gates", "node-1", "CSIMigrationAWS=false");
    expect(await cluster(dir, "gates", "node-1")).not.toContain("CSIMigrationAWS");
  });

  test("down, and down again", async () => {
    await cluster(dir, "down");
    expect(existsSync(dir)).toBe(false);
    expect(await longshore("cluster", "down", "--dir", dir)).toEqual({
      code: 0,
      out: "",
      err: `no cluster in ${dir}\n`,
    });
  });
});

describe("longshore cluster down", () => {
  test("also cleans up after a supervisor that was killed, with a pod running", async () => {
    const dir = shortDirectory();
    await cluster(dir, "up", "--detach", "--nodes", "1");
    await startWriter(dir);
    await expect
      .poll(async () => (await status(dir)).nodes[0]?.attached, { timeout: 20_000, interval: 100 })
      .toBe(1);
    const podLog = () =>
      readdirSync(join(dir, "logs/pods")).map((pod) =>
        readFileSync(join(dir, "logs/pods", pod, "writer_0.log"), "utf8"),
      );
    await expect.poll(podLog, { timeout: 20_000 }).toEqual([expect.stringContaining("ack 5\n")]);
    const [pod = ""] = readdirSync(join(dir, "p/node-1"));
    const { container } = JSON.parse(
      readFileSync(join(dir, "p/node-1", pod, "writer/state.json"), "utf8"),
    ) as {
      readonly container: { readonly pid: number };
    };
    const supervisor = (await processOf(dir, "supervisor"))?.pid ?? 0;
    expect(supervisor).toBeGreaterThan(1);
    process.kill(supervisor, "SIGKILL");

    const left = machineStateBelow(dir);
    expect(left.processes.length).toBeGreaterThan(6);
    if (mayMount()) {
      expect(left.loopDevices).toHaveLength(1);
      expect(left.mounts.length).toBeGreaterThan(2);
    }
    await cluster(dir, "down");
    expect(machineStateBelow(dir)).toEqual(nothing);
    expect(existsSync(`/proc/${container.pid}`)).toBe(false);
    expect(existsSync(dir)).toBe(false);
  });

  test("frees the port that the cluster was given", async () => {
    const dir = shortDirectory();
    const port = await freePort();
    await cluster(dir, "up", "--detach", "--nodes", "1", "--port", String(port));
    expect(readFileSync(join(dir, "kubeconfig"), "utf8")).toContain(`127.0.0.1:${port}`);
    await cluster(dir, "down");
    expect(await freePort(port)).toBe(port);
  });
});

/** Creates a pod that writes to a volume of the default class. */
async function startWriter(dir: string): Promise<void> {
  const env = processEnv("test", silentLogger);
  const config = await loadKubeconfig(processHost("unprivileged"), { path: join(dir, "kubeconfig") });
  const kube = createHttpClient(env, config);
  const signal = new AbortController().signal;
  const namespace = "default";
  await kube.create(
    resources.persistentVolumeClaims,
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "data", namespace },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "16Mi" } } },
    },
    { signal },
  );
  const command = [process.execPath, writerScript, "$(LONGSHORE_MOUNT_DATA)", "data", "20"];
  const volumeMounts = [{ name: "data", mountPath: "/data" }];
  await kube.create(
    resources.pods,
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "writer", namespace },
      spec: {
        containers: [{ name: "writer", image: "host", command, volumeMounts }],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
      },
    },
    { signal },
  );
  await kube.close();
}
