/**
 * The disk that holds a cluster is full to its last byte while a writer writes: no process is dead for good, no
 * acknowledged write is lost, nothing is stranded, and all goes on once there is room.
 */
import { execFileSync, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import {
  type ConfigMap,
  createHttpClient,
  type KubeClient,
  loadKubeconfig,
  resources,
} from "@longshore/kube";
import {
  acknowledgedRecords,
  lostRecords,
  mayMount,
  processEnv,
  processHost,
  rewrittenRecords,
  writerSet,
} from "@longshore/local";
import { silentLogger } from "@longshore/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { podLogsBelow } from "./support/pod-logs.ts";
import { runProgram } from "./support/run-command.ts";
import { longshoreCommand, shortDirectory, writerScript } from "./support/test-cluster.ts";

const never = new AbortController().signal;
const namespace = "default";
/** A volume of the in-tree class has a whole GiB. */
const diskSize = "1400M";
/** Block size of its file system. */
const blockBytes = 4096;
if (!mayMount()) console.warn("a small disk can only be made by root: the tests of full disks are skipped");

/** Takes all the room there is, in ever smaller pieces. */
function fill(path: string): void {
  const file = openSync(path, "a");
  for (let size = 4 << 20; size >= 1; size = Math.floor(size / 4)) {
    try {
      for (;;) writeSync(file, Buffer.alloc(size, 1));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }
  closeSync(file);
}

interface PidFile {
  readonly pid: number;
}

test.skipIf(process.platform !== "linux")(
  "an API server whose output goes to a full disk serves on, and ends well",
  async () => {
    const base = shortDirectory();
    const kubeconfig = join(base, "kubeconfig");
    const full = openSync("/dev/full", "w");
    const [program = "", ...first] = longshoreCommand;
    const args = [...first, "run", "apiserver", "--in-memory", "--kubeconfig-out", kubeconfig];
    const child = spawn(program, args, { stdio: ["ignore", full, full] });
    closeSync(full);
    const ended = new Promise<number | null>((resolve) => child.on("exit", resolve));
    try {
      await expect.poll(() => existsSync(kubeconfig), { timeout: 30_000 }).toBe(true);
      const config = await loadKubeconfig(processHost("unprivileged"), { path: kubeconfig });
      const kube = createHttpClient(processEnv("test", silentLogger), config);
      await expect
        .poll(() => kube.get(resources.namespaces, { name: "default" }, { signal: never }), {
          timeout: 30_000,
        })
        .toBeDefined();
      kube.close();
    } finally {
      child.kill("SIGTERM");
      expect(await ended).toBe(0);
      rmSync(base, { recursive: true, force: true });
    }
  },
  90_000,
);

describe.skipIf(!mayMount()).each([
  ["kernel", {}],
  ["unprivileged", { LONGSHORE_UNPRIVILEGED: "1" }],
])("a cluster on a full disk, with the %s form of volumes", (form, more) => {
  const base = shortDirectory();
  const image = join(base, "image");
  const small = join(base, "s");
  const dir = join(small, "c");
  const ballast = join(small, "ballast");
  const env = { ...process.env, ...more };

  async function cluster(...args: string[]): Promise<string> {
    const outcome = await runProgram([...longshoreCommand, "cluster", ...args, "--dir", dir], { env });
    expect(outcome).toMatchObject({ code: 0 });
    return outcome.out;
  }
  const isAlive = (name: string) => {
    const file = join(dir, "run", `${name}.json`);
    if (!existsSync(file)) return false;
    try {
      process.kill((JSON.parse(readFileSync(file, "utf8")) as PidFile).pid, 0);
      return true;
    } catch {
      return false;
    }
  };
  const pidOf = (name: string) =>
    (JSON.parse(readFileSync(join(dir, "run", `${name}.json`), "utf8")) as PidFile).pid;

  async function withKube<T>(work: (kube: KubeClient) => Promise<T>): Promise<T> {
    const config = await loadKubeconfig(processHost("unprivileged"), { path: join(dir, "kubeconfig") });
    const kube = createHttpClient(processEnv("test", silentLogger), config);
    return work(kube).finally(() => kube.close());
  }

  const logs = () => podLogsBelow(dir, "writer");
  const acknowledged = () => acknowledgedRecords(logs());
  const writerRuns = async () => {
    const before = acknowledged().size;
    await expect
      .poll(() => acknowledged().size, { timeout: 100_000, interval: 200 })
      .toBeGreaterThan(before + 10);
  };

  function expectNothingLost(): void {
    const found = execFileSync("find", ["-L", join(dir, "n/node-1/pods"), "-name", "records"], {
      encoding: "utf8",
    });
    const [file = ""] = found.trim().split("\n");
    expect(lostRecords("writer-0", readFileSync(file, "utf8"), acknowledged())).toEqual([]);
    expect(rewrittenRecords(logs())).toEqual([]);
  }

  beforeAll(async () => {
    execFileSync("truncate", ["-s", diskSize, image]);
    execFileSync("mkfs.ext4", ["-q", "-F", "-m0", "-b", String(blockBytes), image]);
    mkdirSync(small);
    execFileSync("mount", ["-o", "loop", image, small]);
    await cluster("up", "--detach", "--nodes", "1");
    const command = [process.execPath, writerScript, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "20"];
    await withKube((kube) =>
      kube.create(resources.statefulSets, writerSet({ replicas: 1, command }), { signal: never }),
    );
  }, 120_000);

  afterAll(async () => {
    rmSync(ballast, { force: true });
    await runProgram([...longshoreCommand, "cluster", "down", "--dir", dir], { env });
    expect(machineStateBelow(dir)).toEqual(nothing);
    execFileSync("umount", [small]);
    rmSync(base, { recursive: true, force: true });
  }, 90_000);

  test("goes on once there is room, with all that was acknowledged", async () => {
    await writerRuns();
    const supervisor = pidOf("supervisor");
    const server = pidOf("apiserver");
    fill(ballast);
    const text = "x".repeat(200_000);
    const created: (string | number)[] = [];
    await withKube(async (kube) => {
      for (let i = 0; i < 40; i++) {
        const map: ConfigMap = { metadata: { name: `big-${i}`, namespace }, data: { text } };
        await kube.create(resources.configMaps, map, { signal: never }).then(
          () => created.push("stored"),
          (error: { readonly code?: number; readonly status?: { readonly code?: number } }) =>
            created.push(error.status?.code ?? error.code ?? String(error)),
        );
      }
      fill(ballast);
      // It refuses to write, and answers.
      expect(created).toContain(500);
      expect(await kube.list(resources.configMaps, { namespace, signal: never })).toBeDefined();
    });
    expect(pidOf("apiserver")).toBe(server);
    for (const name of ["controller-manager", "csi-controller", "node-agent-node-1"]) {
      process.kill(pidOf(name), "SIGKILL");
    }
    // Long enough for every process to have logged, and for the supervisor to have tried.
    const untilMs = performance.now() + 12_000;
    await expect
      .poll(
        () => {
          fill(ballast);
          return performance.now() > untilMs;
        },
        { timeout: 30_000, interval: 500 },
      )
      .toBe(true);
    expect(process.kill(supervisor, 0)).toBe(true);
    expect(pidOf("supervisor")).toBe(supervisor);
    // What ends leaves a little room, so that now this process starts and now that one.
    const status = async () => {
      fill(ballast);
      return (await runProgram([...longshoreCommand, "cluster", "status", "--dir", dir], { env })).out;
    };
    expect(await status()).toContain(`the disk that holds ${dir} is full: make room there`);
    await expect
      .poll(status, { timeout: 30_000 })
      .toMatch(/^(controller-manager|csi-controller|node-agent-node-1) +- +restarting +-$/m);
    // Lines are lost only once the last block of the log is full.
    const hasLostLines = statSync(join(dir, "logs/supervisor.log")).size % blockBytes === 0;

    rmSync(ballast);
    const all = ["apiserver", "disk-cloud", "controller-manager", "csi-controller", "csi-node-node-1"];
    await expect
      .poll(() => [...all, "node-agent-node-1"].filter((name) => !isAlive(name)), { timeout: 60_000 })
      .toEqual([]);
    await writerRuns();
    expectNothingLost();
    if (hasLostLines) {
      await expect
        .poll(() => readFileSync(join(dir, "logs/supervisor.log"), "utf8"), { timeout: 30_000 })
        .toMatch(/log lines before this one could not be written and are lost lost=\d+/);
    }
    await expect.poll(() => cluster("status", "--json"), { timeout: 60_000 }).toContain('"waiting":[]');
  }, 300_000);

  test("is stopped while it is full, and started again once there is room", async () => {
    fill(ballast);
    await cluster("stop");
    expect(machineStateBelow(dir)).toEqual(nothing);
    const refused = await runProgram([...longshoreCommand, "cluster", "start", "--dir", dir], { env });
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("make room there") });
    rmSync(ballast);
    if (form === "kernel") {
      for (const disk of readdirSync(join(dir, "cloud/disks"))) {
        // Its journal may have to be repeated; errors there are none.
        execFileSync("e2fsck", ["-fn", join(dir, "cloud/disks", disk)]);
      }
    }
    await cluster("start", "--detach");
    await writerRuns();
    expectNothingLost();
  }, 200_000);

  test("strands nothing: the volume is let go of and its writes are there", async () => {
    await withKube(async (kube) => {
      const body = { spec: { replicas: 0 } };
      await kube.patch(
        resources.statefulSets,
        { namespace, name: "writer" },
        { type: "merge", body },
        { signal: never },
      );
      await expect
        .poll(
          async () => {
            const nodes = await kube.list(resources.nodes, { signal: never });
            const attachments = await kube.list(resources.volumeAttachments, { signal: never });
            return [nodes.items[0]?.status?.volumesAttached ?? [], attachments.items];
          },
          { timeout: 90_000, interval: 200 },
        )
        .toEqual([[], []]);
    });
  }, 120_000);
});
