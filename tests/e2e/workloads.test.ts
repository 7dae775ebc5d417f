/** Workloads and their containers as an administrator uses them: kubectl of two versions on a cluster of processes. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clusterLayout } from "@longshore/local";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { kubectlOf } from "./support/kubectl.ts";
import { TestCluster } from "./support/test-cluster.ts";

const versions = ["1.20", "1.32"] as const;

interface Ran {
  readonly out: string;
  readonly err: string;
  readonly code: number | null;
}

let cluster: TestCluster;
let home: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "ls-kubectl-"));
  cluster = await TestCluster.empty();
});
afterAll(async () => {
  await cluster.down();
  rmSync(home, { recursive: true, force: true });
});

describe.each(versions)("kubectl %s", (version) => {
  const program = kubectlOf(version);
  const suffix = version.replace(".", "-");
  const app = `web-${suffix}`;
  const pod = `box-${suffix}`;

  async function start(args: readonly string[]): Promise<ChildProcess> {
    const path = await program;
    if (path === undefined) throw new Error(`kubectl ${version} is not to be had`);
    const kubeconfig = clusterLayout(cluster.dir).kubeconfig;
    return spawn(path, [`--kubeconfig=${kubeconfig}`, ...args], {
      env: { HOME: home, PATH: process.env.PATH ?? "" },
      cwd: home,
    });
  }

  async function kubectl(args: readonly string[], input?: string): Promise<Ran> {
    const child = await start(args);
    let out = "";
    let err = "";
    child.stdout?.on("data", (chunk) => {
      out += chunk;
    });
    child.stderr?.on("data", (chunk) => {
      err += chunk;
    });
    child.stdin?.end(input);
    return new Promise((resolve) => child.on("close", (code) => resolve({ out, err, code })));
  }

  const ok = async (args: readonly string[], input?: string) => {
    const ran = await kubectl(args, input);
    expect({ ...ran, out: "" }).toMatchObject({ code: 0, err: expect.any(String) });
    return ran.out;
  };
  const template = (labels: object, script: string, more: object = {}) => ({
    metadata: { labels },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: "main", image: "host", command: ["/bin/sh", "-c", script] }],
      ...more,
    },
  });
  const serve = "echo begun; while :; do sleep 0.2; done";

  test("a Deployment, a DaemonSet and a Job are applied, rolled out, and undone", async () => {
    const objects = [
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: app },
        spec: { replicas: 2, selector: { matchLabels: { app } }, template: template({ app }, serve) },
      },
      {
        apiVersion: "apps/v1",
        kind: "DaemonSet",
        metadata: { name: app },
        spec: { selector: { matchLabels: { ds: app } }, template: template({ ds: app }, serve) },
      },
      {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: app },
        spec: { template: template({ job: app }, "echo done", { restartPolicy: "Never" }) },
      },
    ];
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
    await ok(["apply", "-f", "-"], list);
    await ok(["rollout", "status", `deployment/${app}`, "--timeout=60s"]);
    await ok(["rollout", "status", `daemonset/${app}`, "--timeout=60s"]);
    await ok(["wait", "--for=condition=Complete", `job/${app}`, "--timeout=60s"]);
    expect(await ok(["logs", `job/${app}`])).toBe("done\n");
    await ok(["set", "env", `deployment/${app}`, "VERSION=2"]);
    await ok(["rollout", "status", `deployment/${app}`, "--timeout=60s"]);
    await ok(["rollout", "undo", `deployment/${app}`]);
    await ok(["rollout", "status", `deployment/${app}`, "--timeout=60s"]);
    expect(await ok(["rollout", "history", `deployment/${app}`])).toMatch(/\n2 .*\n3 /);
    await ok(["delete", `deployment/${app}`, `daemonset/${app}`, `job/${app}`]);
  });

  test("logs are followed, programs run beside a container, files are copied, ports are forwarded", async () => {
    const script = "echo first; echo second; read x < /go; echo third; exec sleep 1000";
    const spec = template({ box: pod }, `mkfifo /go; ${script}`).spec;
    await ok(
      ["apply", "-f", "-"],
      JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: pod }, spec }),
    );
    await ok(["wait", "--for=condition=Ready", `pod/${pod}`, "--timeout=60s"]);
    await cluster.until("it has begun", async () => (await ok(["logs", pod])) === "first\nsecond\n");
    expect(await ok(["logs", pod, "--tail=1"])).toBe("second\n");
    const stamped = await ok(["logs", pod, "--timestamps", "--since=1h"]);
    expect(stamped).toMatch(/^(\S+Z) first\n(\S+Z) second\n$/);
    const [first = ""] = stamped.split(" ");
    expect(Math.abs(Date.now() - Date.parse(first))).toBeLessThan(600_000);
    expect(await ok(["logs", pod, "--since-time=2100-01-01T00:00:00Z"])).toBe("");
    expect((await kubectl(["logs", pod, "--previous"])).err).toContain("previous terminated container");

    const follow = await start(["logs", "-f", pod]);
    const ended = new Promise((resolve) => follow.on("close", resolve));
    let followed = "";
    follow.stdout?.on("data", (chunk) => {
      followed += chunk;
    });
    await cluster.until("the beginning is followed", async () => followed.includes("second"));

    expect(await ok(["exec", pod, "--", "/bin/sh", "-c", "echo out; echo err >&2"])).toBe("out\n");
    expect((await kubectl(["exec", pod, "--", "/bin/sh", "-c", "exit 3"])).code).toBe(3);
    const large = "0123456789abcdef".repeat(64 * 1024);
    expect(await ok(["exec", "-i", pod, "--", "cat"], large)).toBe(large);
    await ok(["exec", pod, "--", "/bin/sh", "-c", "echo > /go"]);
    await cluster.until("what comes later is followed", async () => followed.endsWith("third\n"));

    writeFileSync(join(home, "here"), large);
    await ok(["cp", "here", `${pod}:/tmp/there`]);
    await ok(["cp", `${pod}:/tmp/there`, "back"]);
    expect(readFileSync(join(home, "back"), "utf8")).toBe(large);

    const echo = createServer((socket) => socket.pipe(socket));
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
    const address = echo.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const forward = await start(["port-forward", pod, `:${address.port}`]);
    let said = "";
    forward.stdout?.on("data", (chunk) => {
      said += chunk;
    });
    const local = () => Number(/127\.0\.0\.1:([0-9]+)/.exec(said)?.[1]);
    await cluster.until("the port is forwarded", async () => local() > 0);
    expect(await throughPort(local(), "there and back")).toBe("there and back");
    forward.kill();
    echo.close();

    await ok(["delete", `pod/${pod}`]);
    await ended;
  });
});

/** Sends the text and closes; what comes back. */
function throughPort(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" });
    let back = "";
    socket.on("data", (chunk) => {
      back += chunk;
      if (back.length >= text.length) socket.end();
    });
    socket.on("close", () => resolve(back));
    socket.on("error", reject);
    socket.write(text);
  });
}
