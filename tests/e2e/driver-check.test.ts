/**
 * `longshore driver check` as an author runs it, against the reference driver as a process of its own: without
 * root's rights (directories stand in for disks), over a real socket, killed and started again.
 */
import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { machineStateBelow, nothing } from "./support/machine-state.ts";
import { longshoreCommand } from "./support/test-cluster.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "ls-dc-")));
const [program = "", ...first] = longshoreCommand;
const socket = join(base, "csi.sock");
const endpoint = `unix://${socket}`;
const state = join(base, "state");
const restartScript = join(base, "restart.sh");
const pidFile = join(base, "pid");
// Of its own: another check on this machine may make and remove such directories at the same time.
const temporary = join(base, "tmp");
mkdirSync(temporary);

interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function start(args: readonly string[]): { readonly child: ChildProcess; readonly ended: Promise<Outcome> } {
  const child = spawn(program, [...first, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TMPDIR: temporary },
  });
  let out = "";
  let err = "";
  child.stdout?.setEncoding("utf8").on("data", (text) => {
    out += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text) => {
    err += text;
  });
  const ended = new Promise<Outcome>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
  });
  return { child, ended };
}

const check = (...args: readonly string[]) =>
  start(["driver", "check", "--endpoint", endpoint, ...args]).ended;

/** The driver's command line; what it says goes to a file, so that its restart does not wait for it. */
function driverArgs(faults: readonly string[] = []): readonly string[] {
  return [
    ...[...first, "run", "reference-driver", "--endpoint", endpoint, "--state-dir", state],
    ...["--mode", "directory", "--node-id", "node-1", "--max-volumes", "8"],
    ...faults.flatMap((name) => ["--fault", name]),
  ];
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const untilMs = Date.now() + 60_000; !holds(); ) {
    if (Date.now() > untilMs) throw new Error(`${what} did not come about`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const started = new Set<number>();

/** Starts the driver and waits until it serves. */
async function startDriver(...faults: readonly string[]): Promise<ChildProcess> {
  const child = spawn(program, [...driverArgs(faults)], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout?.setEncoding("utf8").on("data", (text) => {
    said += text;
  });
  if (child.pid !== undefined) {
    started.add(child.pid);
    writeFileSync(pidFile, String(child.pid));
  }
  await until("the driver", () => said.includes("serving at") || child.exitCode !== null);
  return child;
}

/** What the driver keeps of volumes and snapshots, by looking for their files. */
function disks(): readonly string[] {
  const dir = join(state, "disks");
  return existsSync(dir) ? readdirSync(dir) : [];
}

const ownDirectories = () => readdirSync(temporary).filter((name) => name.startsWith("longshore-check-"));

beforeEach(() => {
  for (const directory of [state, temporary]) {
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
  }
});
afterEach(() => {
  if (existsSync(pidFile)) started.add(Number(readFileSync(pidFile, "utf8")));
  for (const pid of started) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
  started.clear();
  rmSync(pidFile, { force: true });
});
afterAll(async () => {
  rmSync(base, { recursive: true, force: true });
  // What was killed a moment ago may still have its sockets.
  await until("the end of the drivers", () => machineStateBelow(base).sockets.length === 0);
  expect(machineStateBelow(base)).toEqual(nothing);
});

test("the reference driver keeps the contract, also over crashes; nothing is left", async () => {
  // The shell is the author's: the command itself is run without one.
  const line = [program, ...driverArgs()].map((word) => `'${word}'`).join(" ");
  writeFileSync(
    restartScript,
    `#!/bin/sh
kill -9 "$(cat '${pidFile}')"
${line} > '${base}/log' 2>&1 &
echo $! > '${pidFile}'
until grep -q 'serving at' '${base}/log'; do sleep 0.1; done
`,
  );
  chmodSync(restartScript, 0o700);
  const secrets = join(base, "secrets.yaml");
  writeFileSync(
    secrets,
    "CreateVolumeSecret: {token: s3cr3t-value}\nNodeStageVolumeSecret: {token: s3cr3t-value}\n",
  );
  await startDriver();
  const xml = join(base, "report.xml");
  const { code, out, err } = await check(
    ...[
      "--restart-cmd",
      restartScript,
      "--secrets",
      secrets,
      "--mutable-parameters",
      "iops=4000",
      "--fill-node",
    ],
    ...["-o", "junit", "--output-file", xml],
  );
  expect({ code, out, err }).toEqual({ code: 0, out: "", err: "" });
  const report = readFileSync(xml, "utf8");
  expect(report).toMatch(/<testsuites [^>]*failures="0"/);
  expect(report).toContain('<testcase classname="csi.node" name="node.publish-volume.after-crash" time="');
  expect(report).not.toContain("s3cr3t-value");
  expect(ownDirectories()).toEqual([]);
  expect(disks()).toEqual([]);
}, 300_000);

describe("a driver that breaks a rule", () => {
  test("fails that check, in one line at once and in the report", async () => {
    await startDriver("create-not-idempotent");
    const { code, out, err } = await check(
      "-o",
      "json",
      "--focus",
      "controller.create-volume.(works|idempotent)",
    );
    expect(code).toBe(1);
    expect(err).toMatch(/^✗ controller\.create-volume\.idempotent: CreateVolume repeated gave volume /);
    const report = JSON.parse(out);
    expect(report).toMatchObject({
      driver: { name: "reference.csi.longshore.dev", nodeId: "node-1" },
      passed: 1,
      failed: 1,
      skipped: 0,
      leftovers: [],
    });
    expect(report.results[1].calls.map((call: { rpc: string }) => call.rpc)).toEqual([
      "CreateVolume",
      "CreateVolume",
    ]);
  });

  test("a table shows what was observed", async () => {
    await startDriver("delete-missing-volume-not-found");
    const { code, out } = await check("--focus", "delete-volume.unknown", "--quiet");
    expect(code).toBe(1);
    expect(out).toContain(
      "DeleteVolume of an unknown volume was refused with NOT_FOUND (volume longshore-check-unknown-volume-",
    );
    expect(out).toMatch(
      /0 passed, 1 failed, 0 warned, 0 skipped in \d+\.\d s: the driver breaks the contract\n$/,
    );
  });
});

test("a driver that is killed while it is checked is one failure, and what is left is named", async () => {
  const driver = await startDriver();
  const { child, ended } = start(["driver", "check", "--endpoint", endpoint, "--focus", "^controller"]);
  await until("a volume", () => disks().length > 0 || child.exitCode !== null);
  driver.kill("SIGKILL");
  const { code, out } = await ended;
  expect(code).toBe(1);
  expect(out.match(/^FAILED /gm)?.length).toBeLessThanOrEqual(1);
  expect(out).toContain("the driver has been gone since controller.");
}, 120_000);

test("Ctrl-C removes what was made, reports what was seen, and ends with 130", async () => {
  await startDriver();
  const { child, ended } = start([
    "driver",
    "check",
    "--endpoint",
    endpoint,
    "--repeats",
    "1000",
    "--focus",
    "^node",
  ]);
  await until("a volume", () => disks().length > 0 || child.exitCode !== null);
  child.kill("SIGINT");
  const { code, out, err } = await ended;
  expect({ code, err }).toEqual({ code: 130, err: "" });
  expect(out).toMatch(/: interrupted, \d+ checks were not run\n/);
  expect(disks()).toEqual([]);
  expect(ownDirectories()).toEqual([]);
}, 120_000);

test.each([
  [
    "no socket",
    ["--endpoint", `${base}/none.sock`],
    `there is no socket ${base}/none.sock: start the driver`,
  ],
  ["a directory", ["--endpoint", base], `${base} is a directory: name the socket in it`],
  ["a file", ["--endpoint", "/etc/passwd"], "/etc/passwd is a file and no socket"],
  ["a relative path", ["--endpoint", "csi.sock"], "write the absolute path of a unix socket"],
  ["no endpoint", [], "--endpoint is required"],
  [
    "no check left",
    ["--endpoint", "/x.sock", "--focus", "nothing-like-it"],
    "no check is left by --focus and --skip",
  ],
  ["no secrets", ["--endpoint", "/x.sock", "--secrets", `${base}/none.yaml`], "--secrets: cannot read"],
  ["an unknown format", ["--endpoint", "/x.sock", "-o", "xml"], "Allowed choices are table, json, junit"],
] as const)("%s is wrong usage, in one sentence", async (_name, args, words) => {
  const { code, out, err } = await start(["driver", "check", ...args]).ended;
  expect(err).toContain(words);
  expect({ code, out }).toEqual({ code: 2, out: "" });
});

test("a socket without a listener is distinguished from a missing one", async () => {
  const driver = await startDriver();
  driver.kill("SIGKILL");
  await until("the driver's end", () => driver.exitCode !== null || driver.signalCode !== null);
  const { code, out, err } = await check();
  expect(err).toBe(
    `longshore: --endpoint: no process listens on ${socket}, though the socket exists: the driver has ended, start it\n`,
  );
  expect({ code, out }).toEqual({ code: 2, out: "" });
});

test("the checks are listed without a driver", async () => {
  const { code, out } = await start(["driver", "check", "--list", "-o", "json", "--skip", "^node"]).ended;
  expect(code).toBe(0);
  const ids = JSON.parse(out).map(({ id }: { id: string }) => id);
  expect(ids).toContain("controller.create-volume.idempotent");
  expect(ids.filter((id: string) => id.startsWith("node."))).toEqual([]);
});
