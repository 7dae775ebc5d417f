import { execFileSync, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogger } from "./logger-pino.ts";
import { LossyLines } from "./lossy-lines.ts";

const failure = (code: string) => Object.assign(new Error(code), { code });

/** A sink that takes so many bytes and then fails with the code. */
function sink(code: string, room = 0) {
  const state = { text: "", room, code };
  const timers: (() => void)[] = [];
  const lines = new LossyLines({
    write(bytes) {
      const taken = Math.min(bytes.length, state.room);
      if (taken === 0) throw failure(state.code);
      state.room -= taken;
      state.text += Buffer.from(bytes.subarray(0, taken)).toString();
      return taken;
    },
    lostLine: (count) => `lost ${count}\n`,
    timer: (_ms, work) => {
      timers.push(work);
      return { cancel() {} };
    },
    waitingBytesMax: 100,
  });
  const tick = () => {
    for (const work of timers.splice(0)) work();
  };
  return { state, lines, tick, timers };
}

describe("lines that cannot be written", () => {
  test.each(["ENOSPC", "EPIPE", "EIO", "EBADF"])("with %s are dropped and counted", (code) => {
    const { state, lines } = sink(code);
    lines.write("one\n");
    lines.write("two\n");
    state.room = 1000;
    lines.write("three\n");
    lines.write("four\n");
    expect(state.text).toBe("lost 2\nthree\nfour\n");
  });

  test("are reported once there is room", () => {
    const { state, lines, tick, timers } = sink("ENOSPC");
    lines.write("one\n");
    lines.write("two\n");
    expect(timers).toHaveLength(1);
    tick();
    expect([state.text, timers.length]).toEqual(["", 1]);
    state.room = 1000;
    tick();
    expect([state.text, timers.length]).toEqual(["lost 2\n", 0]);
  });

  test("a line of which only a part had room is ended before the next", () => {
    const { state, lines } = sink("ENOSPC", 6);
    lines.write("one\n");
    lines.write("two\n");
    state.room = 1000;
    lines.write("three\n");
    expect(state.text).toBe("one\ntw\nlost 1\nthree\n");
  });

  test("no more are reported lost than were, when there is room for nothing but that", () => {
    const { state, lines } = sink("ENOSPC");
    lines.write("one\n");
    state.room = 3;
    lines.write("two\n");
    state.room = 1000;
    lines.write("three\n");
    expect(state.text).toBe("los\nlost 2\nthree\n");
  });
});

describe("a reader that is slow", () => {
  test("gets every line, in order", () => {
    const { state, lines, tick } = sink("EAGAIN", 2);
    lines.write("one\n");
    lines.write("two\n");
    expect(state.text).toBe("on");
    state.room = 3;
    tick();
    expect(state.text).toBe("one\nt");
    state.room = 100;
    tick();
    expect(state.text).toBe("one\ntwo\n");
  });

  test("and stops: memory does not grow, one timer waits, and what is lost is reported once it reads on", () => {
    const { state, lines, tick, timers } = sink("EAGAIN");
    for (let i = 0; i < 1000; i++) lines.write("0123456789 12345678\n");
    expect(timers).toHaveLength(1);
    state.room = 10_000;
    tick();
    expect(state.text.split("\n")).toEqual([...Array(5).fill("0123456789 12345678"), "lost 995", ""]);
    lines.write("next\n");
    expect(state.text.endsWith("lost 995\nnext\n")).toBe(true);
  });
});

test("a logger whose destination fails ends no process, and says how much was lost in its own form", () => {
  const written: string[] = [];
  let isFull = true;
  const write = (line: string) => {
    if (isFull) throw failure("ENOSPC");
    written.push(line);
  };
  const clock = { now: () => new Date("2026-01-01T12:00:00.123Z") };
  const json = createLogger({ format: "json", level: "info", destination: { write }, clock });
  const human = createLogger({ format: "human", level: "info", destination: { write }, clock });
  json.info("a");
  human.child({ component: "x" }).info("b");
  isFull = false;
  json.info("c");
  human.info("d");
  const message = "log lines before this one could not be written and are lost";
  expect(JSON.parse(written[0] ?? "")).toEqual({
    level: "warn",
    time: "2026-01-01T12:00:00.123Z",
    message,
    lost: 1,
  });
  expect(written[2]).toBe(`12:00:00.123 WARN  ${message} lost=1\n`);
});

describe("a process that logs", () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "longshore-log-"));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const index = new URL("./logger-pino.ts", import.meta.url).href;
  /** A program that logs `count` lines and exits with a code that says it reached its end. */
  const program = (count: number) => {
    const script = join(dir, "program.ts");
    writeFileSync(
      script,
      `import { createLogger } from ${JSON.stringify(index)};
const logger = createLogger({ format: "json", level: "info" });
for (let i = 0; i < ${count}; i++) logger.info("line " + i, { pad: "x".repeat(1000) });
setTimeout(() => process.exit(7), 50);\n`,
    );
    return ["--import", import.meta.resolve("tsx"), script];
  };
  const exitOf = (child: ReturnType<typeof spawn>) =>
    new Promise<number | null>((resolve) => child.on("exit", (code) => resolve(code)));

  test.skipIf(process.platform !== "linux")("to a disk without room goes on", async () => {
    const full = openSync("/dev/full", "w");
    const child = spawn(process.execPath, program(10), { stdio: ["ignore", "ignore", full] });
    closeSync(full);
    expect(await exitOf(child)).toBe(7);
  });

  test("to a pipe whose reader has gone goes on", async () => {
    const child = spawn(process.execPath, program(300), { stdio: ["ignore", "ignore", "pipe"] });
    child.stderr?.destroy();
    expect(await exitOf(child)).toBe(7);
  });

  test.skipIf(process.platform !== "linux")("to a pipe without a reader goes on", async () => {
    const pipe = join(dir, "pipe");
    execFileSync("mkfifo", [pipe]);
    const both = openSync(pipe, "r+"); // So that the pipe has a reader, which never reads.
    const child = spawn(process.execPath, program(3000), { stdio: ["ignore", "ignore", both] });
    expect(await exitOf(child)).toBe(7);
    closeSync(both);
  });

  test("into a file appends to it", () => {
    const file = join(dir, "log");
    const logger = createLogger({ format: "human", level: "info", destination: file });
    logger.info("a");
    logger.info("b");
    expect(readFileSync(file, "utf8").split("\n")).toHaveLength(3);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
