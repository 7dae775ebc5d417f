import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger, systemClock } from "@longshore/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isAlive } from "../programs/process-identity.ts";
import { type PidRecord, type Supervisor, startSupervisor } from "./supervisor.ts";

let dir: string;
let supervisor: Supervisor;
const never = new AbortController().signal;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longshore-sup-"));
  mkdirSync(join(dir, "run"));
  supervisor = startSupervisor({ clock: systemClock, logger: silentLogger });
});
afterEach(async () => {
  await supervisor.stop();
  rmSync(dir, { recursive: true, force: true });
});

const file = (name: string) => join(dir, name);
const text = (name: string) => (existsSync(file(name)) ? readFileSync(file(name), "utf8") : "");
const pidRecord = () => JSON.parse(text("run/p.json")) as PidRecord;
async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i++) await systemClock.sleep(10, never);
  expect(holds()).toBe(true);
}
const supervise = (script: string, over: { pidFile?: string; logFile?: string } = {}) =>
  supervisor.supervise({
    name: "p",
    argv: ["/bin/sh", "-c", script],
    pidFile: over.pidFile ?? file("run/p.json"),
    logFile: over.logFile ?? file("p.log"),
  });

describe("a supervised process", () => {
  it("is started again when it dies, and ended with the supervisor", async () => {
    supervise("echo up; exec sleep 60");
    await until(() => text("p.log") === "up\n" && text("run/p.json") !== "");
    const first = pidRecord();
    process.kill(first.pid, "SIGKILL");
    await until(() => text("p.log") === "up\nup\n" && text("run/p.json") !== "");
    const second = pidRecord();
    expect([isAlive(first), isAlive(second), second.restarts]).toEqual([false, true, 1]);
    await supervisor.stop();
    expect(isAlive(second)).toBe(false);
    expect(existsSync(file("run/p.json"))).toBe(false);
  });

  it("has of this process's environment what is listed, and a log that is its user's alone", async () => {
    process.env.LONGSHORE_TEST_PASSWORD = "planted";
    try {
      supervise("env; echo done; exec sleep 60");
      await until(() => text("p.log").endsWith("done\n"));
    } finally {
      delete process.env.LONGSHORE_TEST_PASSWORD;
    }
    expect(text("p.log")).not.toContain("planted");
    expect(text("p.log")).toContain(`PATH=${process.env.PATH}\n`);
    expect(statSync(file("p.log")).mode & 0o777).toBe(0o600);
  });

  it("is not started again before the programs have ended that it had run", async () => {
    supervise(
      `echo begin >> ${file("trace")}; (sleep 0.5; echo helper done >> ${file("trace")}) & echo $! >> ${file("helper")}; wait; sleep 60`,
    );
    await until(() => text("helper") !== "" && text("run/p.json") !== "");
    process.kill(pidRecord().pid, "SIGKILL");
    await until(() => text("trace").split("begin").length === 3);
    expect(text("trace")).toBe("begin\nhelper done\nbegin\n");
  });

  it("that cannot be started is tried again, and counts as failing", async () => {
    supervise("echo up; exec sleep 60", { logFile: file("later/p.log") });
    await until(() => supervisor.failing() !== undefined);
    expect(supervisor.failing()?.ended).toContain("could not be started");
    mkdirSync(file("later"));
    await until(() => text("later/p.log") === "up\n");
  });

  it("whose program is missing is named, and found from its working directory once it is there", async () => {
    supervisor.supervise({
      name: "p",
      argv: ["./program"],
      cwd: dir,
      pidFile: file("run/p.json"),
      logFile: file("p.log"),
    });
    await until(() => supervisor.failing() !== undefined);
    expect(supervisor.failing()?.ended).toBe("could not be started: there is no program ./program");
    writeFileSync(file("program"), "#!/bin/sh\npwd\nexec sleep 60\n", { mode: 0o700 });
    await until(() => text("p.log") === `${dir}\n`);
  });

  it("whose pid file cannot be written does not run on unknown", async () => {
    supervise(`echo $$ >> ${file("pids")}; exec sleep 60`, { pidFile: file("none/p.json") });
    await until(() => supervisor.failing() !== undefined);
    await supervisor.stop();
    const alive = () =>
      text("pids")
        .split("\n")
        .filter((pid) => pid !== "" && existsSync(`/proc/${pid}/cmdline`))
        .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("sleep"));
    await until(() => alive().length === 0);
  });

  it.skipIf(process.platform !== "linux" || process.getuid?.() !== 0)(
    "on a full disk (needs root) is tried again with back-off, and runs once there is room",
    async () => {
      mkdirSync(file("small"));
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", file("small")]);
      try {
        writeFileSync(file("small/p.log"), "");
        execFileSync("dd", ["if=/dev/zero", `of=${file("small/ballast")}`, "bs=4k"], { stdio: "ignore" });
      } catch {
        // It is full.
      }
      try {
        supervise("echo up; exec sleep 60", { pidFile: file("small/p.json"), logFile: file("small/p.log") });
        await until(() => supervisor.failing() !== undefined);
        expect(supervisor.failing()?.ended).toContain("could not be started");
        expect(existsSync(file("small/p.json"))).toBe(false);
        rmSync(file("small/ballast"));
        await until(() => existsSync(file("small/p.json")));
        const record = JSON.parse(text("small/p.json")) as PidRecord;
        expect(isAlive(record)).toBe(true);
        await supervisor.stop();
        expect(isAlive(record)).toBe(false);
      } finally {
        execFileSync("umount", ["-l", file("small")]);
      }
    },
  );
});
