import { spawn } from "node:child_process";
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { identifyProcess } from "../programs/process-identity.ts";
import { isRunnerAlive, thisRunner } from "./crossing-runner.ts";

test("this process runs, an earlier one with its number does not, and one of another host is unknown", () => {
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
