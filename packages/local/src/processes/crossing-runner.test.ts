import { spawn } from "node:child_process";
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { isRunnerAlive, thisRunner } from "./crossing-runner.ts";
import { identifyProcess } from "./process-identity.ts";

test("this process runs, another that had its number does not, and of another host nobody knows", () => {
  const runner = thisRunner();
  expect(runner).toMatchObject({ pid: process.pid, host: hostname() });
  expect(isRunnerAlive(runner)).toBe(true);
  expect(isRunnerAlive({ ...runner, processStartedAt: "another time" })).toBe(false);
  expect(isRunnerAlive({ ...runner, host: "elsewhere.example.com" })).toBeUndefined();
});

test("a process that was killed does not run", async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  const pid = child.pid ?? 0;
  const runner = { ...thisRunner(), pid, processStartedAt: identifyProcess(pid)?.startedAt ?? "" };
  expect(isRunnerAlive(runner)).toBe(true);
  const ended = new Promise((resolve) => child.on("exit", resolve));
  child.kill("SIGKILL");
  await ended;
  expect(isRunnerAlive(runner)).toBe(false);
});
