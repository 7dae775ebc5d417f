import { spawn } from "node:child_process";
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { identifyProcess } from "../programs/process-identity.ts";
import { currentCrossing, isRunnerAlive, thisRunner } from "./crossing-runner.ts";

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

test("of several crossings the one to look at is the unfinished one, else the last", () => {
  const finished = (plugin: string, finishedAt: string) =>
    ({ state: "finished", direction: "migrate", startedAt: "", nodesDone: [], plugin, finishedAt }) as const;
  const first = finished("a", "2026-01-01T00:00:00.000Z");
  const last = finished("b", "2026-01-03T00:00:00.000Z");
  const between = finished("c", "2026-01-02T00:00:00.000Z");
  expect(currentCrossing([first, last, between])).toBe(last);
  const interrupted = { ...first, state: "interrupted" } as const;
  expect(currentCrossing([last, interrupted])).toBe(interrupted);
  expect(currentCrossing([])).toBeUndefined();
});
