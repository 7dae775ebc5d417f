import { SimulatedHost, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { lastWords, whileStarting } from "./cluster-start-error.ts";

test.each([
  ["nothing", "", ""],
  ["a sentence", "start\nlongshore: cannot listen\n", "cannot listen"],
  ["a log line", '{"level":"error","message":"cannot listen","error":"in use"}\n', "cannot listen: in use"],
  ["a log line without an error", '{"level":"info","message":"bye"}\n', "bye"],
] as const)("the last words of a process that said %s", (_name, log, words) => {
  expect(lastWords(log)).toBe(words);
});

const wait = { dir: "/tmp", withinMs: 60_000, waitingFor: "the nodes" };

function aStart(failing: boolean) {
  const clock = new VirtualClock();
  const host = new SimulatedHost({ name: "m" });
  const spec = { name: "disk-cloud", argv: [], pidFile: "/p", logFile: "/log" };
  const supervisor = {
    supervise() {},
    failing: () => (failing ? { spec, ended: "exit code 3" } : undefined),
    stop: async () => {},
  };
  const run = <T>(parent: AbortSignal, work: (signal: AbortSignal) => Promise<T>) =>
    clock.run(whileStarting({ clock, host }, supervisor, wait, parent, work));
  return { clock, run };
}

test("a process that cannot run ends the wait at once, and the wait ends with it", async () => {
  const { run } = aStart(true);
  let ended = false;
  await expect(
    run(new AbortController().signal, async (signal) => {
      signal.addEventListener("abort", () => {
        ended = true;
      });
      return new Promise(() => {});
    }),
  ).rejects.toThrow(/^disk-cloud cannot run \(exit code 3\): correct that/);
  expect(ended).toBe(true);
});

test("a wait that takes too long says for what it waited", async () => {
  const { run } = aStart(false);
  await expect(run(new AbortController().signal, () => new Promise(() => {}))).rejects.toThrow(
    /not up after 60 s, waiting for the nodes/,
  );
});

test("what comes in time comes", async () => {
  const { clock, run } = aStart(false);
  const never = new AbortController().signal;
  await expect(run(never, (signal) => clock.sleep(1000, signal).then(() => "up"))).resolves.toBe("up");
});
