/** A cluster that was stopped, killed, or ended with its machine is started again, with all that it held. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createHttpClient, type KubeClient, loadKubeconfig, resources } from "@longshore/kube";
import {
  acknowledgedRecords,
  lostRecords,
  mayMount,
  processEnv,
  processHost,
  writerSet,
} from "@longshore/local";
import { silentLogger } from "@longshore/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { podLogsBelow } from "./support/pod-logs.ts";
import { endLikePowerCut } from "./support/power-cut.ts";
import { longshore } from "./support/run-command.ts";
import { shortDirectory, writerScript } from "./support/test-cluster.ts";

const never = new AbortController().signal;

/** Runs `longshore cluster …`, which must succeed; returns its stdout. */
async function cluster(dir: string, ...args: string[]): Promise<string> {
  const { code, out, err } = await longshore("cluster", ...args, "--dir", dir);
  expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
  return out;
}

async function withKube<T>(dir: string, work: (kube: KubeClient) => Promise<T>): Promise<T> {
  const config = await loadKubeconfig(processHost("unprivileged"), { path: join(dir, "kubeconfig") });
  const kube = createHttpClient(processEnv("test", silentLogger), config);
  return work(kube).finally(() => kube.close());
}

const logsOf = (dir: string) => podLogsBelow(dir, "writer");
const acknowledged = (dir: string) => acknowledgedRecords(logsOf(dir));

/** A writer in a StatefulSet, on a volume of the in-tree class. */
async function startWriter(kube: KubeClient): Promise<void> {
  const command = [process.execPath, writerScript, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "20"];
  await kube.create(resources.statefulSets, writerSet({ replicas: 1, command }), { signal: never });
}

/** Waits until the writer has acknowledged records that it had not before. */
async function writerRuns(dir: string): Promise<void> {
  const before = acknowledged(dir).size;
  await expect
    .poll(() => acknowledged(dir).size, { timeout: 60_000, interval: 100 })
    .toBeGreaterThan(before + 5);
}

/** What the volume holds, by the pod's own mount. */
function recordsOnVolume(dir: string): string {
  const pods = join(dir, "n/node-1/pods");
  for (const pod of readdirSync(pods)) {
    const volumes = execFileSync("find", [join(pods, pod), "-follow", "-name", "records"], {
      encoding: "utf8",
    });
    const [file] = volumes.trim().split("\n");
    if (file !== undefined && file !== "") return readFileSync(file, "utf8");
  }
  return "";
}

function expectNothingLost(dir: string): void {
  const acks = acknowledged(dir);
  expect(acks.size).toBeGreaterThan(0);
  expect(lostRecords("writer-0", recordsOnVolume(dir), acks)).toEqual([]);
}

interface PidFile {
  readonly pid: number;
}

describe("a cluster with a writer", () => {
  const dir = shortDirectory();

  beforeAll(async () => {
    await cluster(dir, "up", "--detach", "--nodes", "1");
    await withKube(dir, startWriter);
  }, 120_000);

  afterAll(async () => {
    await longshore("cluster", "down", "--dir", dir);
    expect(machineStateBelow(dir)).toEqual(nothing);
    rmSync(dir, { recursive: true, force: true });
  }, 60_000);

  test("is stopped: nothing of it runs or is mounted, and its disks are there", async () => {
    await writerRuns(dir);
    await cluster(dir, "stop");
    expect(machineStateBelow(dir)).toEqual(nothing);
    expect(readdirSync(join(dir, "cloud/disks"))).toContainEqual(expect.stringMatching(/^vol-[0-9a-f]+$/));
    const status = await longshore("cluster", "status", "--dir", dir);
    expect(status).toMatchObject({ code: 1, out: "" });
    expect(status.err).toContain(`is stopped: start it with "longshore cluster start --dir ${dir}"`);
    // Again is fine.
    await cluster(dir, "stop");
  }, 90_000);

  test("is started again: objects, volume and pod come back, and nothing is lost", async () => {
    expect(await cluster(dir, "start", "--detach")).toBe(`export KUBECONFIG=${dir}/kubeconfig\n`);
    await writerRuns(dir);
    expectNothingLost(dir);
    expect(
      await withKube(dir, (kube) => kube.list(resources.persistentVolumes, { signal: never })),
    ).toMatchObject({ items: [{ status: { phase: "Bound" } }] });
  }, 120_000);

  test("asked for otherwise than it is, is left as it is", async () => {
    await cluster(dir, "stop");
    const { code, err } = await longshore("cluster", "up", "--nodes", "2", "--dir", dir);
    expect(code).toBe(1);
    expect(err).toContain("has 1 nodes: leave --nodes out");
    expect(readdirSync(join(dir, "cloud/disks"))).not.toEqual([]);
  }, 60_000);

  test("SIGTERM of `cluster up`, as at the machine's end, stops it too, and `up` starts it again", async () => {
    await cluster(dir, "up", "--detach");
    await writerRuns(dir);
    const supervisor = JSON.parse(readFileSync(join(dir, "run/supervisor.json"), "utf8")) as PidFile;
    process.kill(supervisor.pid, "SIGTERM");
    await expect.poll(() => machineStateBelow(dir), { timeout: 60_000, interval: 200 }).toEqual(nothing);
    expect(readdirSync(join(dir, "cloud/disks"))).not.toEqual([]);
    await cluster(dir, "up", "--detach");
    await writerRuns(dir);
    expectNothingLost(dir);
  }, 180_000);

  test.each([["left", false], ...(mayMount() ? ([["gone", true]] as const) : [])] as const)(
    "all of it killed, mounts and devices %s, is started again",
    async (_what, takesMounts) => {
      endLikePowerCut(dir, takesMounts);
      await cluster(dir, "start", "--detach");
      await writerRuns(dir);
      expectNothingLost(dir);
    },
    180_000,
  );
});

test("a directory without a cluster is not started", async () => {
  const { code, err } = await longshore("cluster", "start", "--dir", "/nowhere/at/all");
  expect(code).toBe(1);
  expect(err).toContain('no cluster in /nowhere/at/all: start one with "longshore cluster up');
});
