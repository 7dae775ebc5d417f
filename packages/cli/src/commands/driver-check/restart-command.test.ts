import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runRestartCommand } from "./restart-command.ts";

const never = new AbortController().signal;
const minuteMs = 60_000;
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "ls-restart-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const script = (code: string) => [process.execPath, "-e", code];

test("what it starts in the background goes on, with its output taken", async () => {
  const pidFile = join(dir, "pid");
  const driver = `console.log("x".repeat(200000)); setInterval(() => {}, 1000)`;
  const start = `const child = require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(driver)}], { stdio: "inherit" });
    require("node:fs").writeFileSync(${JSON.stringify(pidFile)}, String(child.pid)); process.exit(0)`;
  await runRestartCommand(script(start), minuteMs, never);
  const pid = Number(readFileSync(pidFile, "utf8"));
  expect(process.kill(pid, 0)).toBe(true);
  process.kill(pid, "SIGKILL");
});

test.each([
  ["fails", script("console.error('no such driver'); process.exit(3)"), "ended with 3: no such driver"],
  ["is killed", script("process.kill(process.pid, 'SIGKILL')"), "ended with SIGKILL"],
  ["is not there", ["/no/such/program"], "ENOENT"],
] as const)("one that %s is an error that quotes its output", async (_name, words, text) => {
  await expect(runRestartCommand(words, minuteMs, never)).rejects.toThrow(text);
});

test("one that does not end is killed, and the error says what to do", async () => {
  // A directory whose name is the process: it is there whole or not at all, whenever the process is killed.
  const code = `require("node:fs").mkdirSync(${JSON.stringify(`${dir}/`)} + process.pid); setInterval(() => {}, 1000)`;
  await expect(runRestartCommand(script(code), 1500, never)).rejects.toThrow(
    "did not end: it must start the driver in the background",
  );
  for (const pid of readdirSync(dir)) expect(() => process.kill(Number(pid), 0)).toThrow("ESRCH");
});

test("an interruption ends it, and is the reason", async () => {
  const controller = new AbortController();
  const running = runRestartCommand(script("setInterval(() => {}, 1000)"), minuteMs, controller.signal);
  controller.abort(new Error("Ctrl-C"));
  await expect(running).rejects.toThrow("Ctrl-C");
});
