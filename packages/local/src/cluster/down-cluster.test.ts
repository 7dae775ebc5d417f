import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { noMeter, silentLogger, systemClock, systemRandom, unprivilegedHost } from "@longshore/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { clusterConfig } from "../layout/cluster-config.ts";
import { clusterLayout } from "../layout/cluster-layout.ts";
import { ClusterDirectoryError } from "../layout/files.ts";
import { downCluster, upCluster } from "./process-cluster.ts";

const env = {
  clock: systemClock,
  random: systemRandom,
  logger: silentLogger,
  meter: noMeter,
  host: unprivilegedHost(),
};
const never = new AbortController().signal;
let base: string;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "longshore-down-")));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe("downCluster", () => {
  it.each([
    ["a directory with one named run, as / and /var have", (dir: string) => mkdirSync(join(dir, "run"))],
    [
      "a cluster.json of something else",
      (dir: string) => writeFileSync(join(dir, "cluster.json"), '{"version":1}'),
    ],
    ["a cluster.json that is no JSON", (dir: string) => writeFileSync(join(dir, "cluster.json"), "x")],
  ])("never touches %s", async (_what, make) => {
    const dir = join(base, "mine");
    mkdirSync(dir);
    make(dir);
    writeFileSync(join(dir, "precious"), "data");
    await expect(downCluster(env, dir, never)).rejects.toThrow(ClusterDirectoryError);
    expect(await env.host.readFile(join(dir, "precious"))).toBe("data");
  });

  it("removes a cluster that had only begun, and says when there is none", async () => {
    const layout = clusterLayout(join(base, "c"));
    await env.host.makeDirectory(layout.runDir, 0o700);
    await env.host.symlink("longshore-cluster", layout.markFile);
    expect(await downCluster(env, layout.dir, never)).toBe(true);
    expect(await env.host.stat(layout.dir)).toBeUndefined();
    expect(await downCluster(env, layout.dir, never)).toBe(false);
  });
});

describe("upCluster", () => {
  const up = (dir: string) =>
    upCluster(env, {
      dir,
      config: clusterConfig(1, "unprivileged"),
      command: [process.execPath, "-e", "0"],
      signal: AbortSignal.abort(new Error("enough")),
    });

  it("refuses a directory that others may write to", async () => {
    const dir = join(base, "open");
    mkdirSync(dir);
    chmodSync(dir, 0o777);
    await expect(up(dir)).rejects.toThrow("may be written by other users");
  });

  it("of two that begin at once in one directory, one is refused and removes nothing of the other's", async () => {
    const dir = join(base, "two");
    const results = await Promise.allSettled([up(dir), up(dir)]);
    const messages = results.map((r) => (r.status === "rejected" ? String(r.reason) : "up"));
    expect(messages.filter((m) => m.includes("enough"))).toHaveLength(1);
    expect(
      messages.filter((m) => m.includes("taken") || m.includes("not empty") || m.includes("already runs")),
    ).toHaveLength(1);
  });
});
