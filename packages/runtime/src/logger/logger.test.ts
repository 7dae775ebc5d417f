import { describe, expect, test } from "vitest";
import { VirtualClock } from "../clock/virtual-clock.ts";
import { loggerContract } from "./logger.contract.ts";
import { errorChain, silentLogger } from "./logger.ts";
import { createLogger, type LoggerOptions } from "./logger-pino.ts";
import { recordingLogger } from "./recording-logger.ts";

function collecting(options: Partial<LoggerOptions> = {}) {
  const written: string[] = [];
  const destination = { write: (line: string) => void written.push(line) };
  const clock = new VirtualClock(new Date("2026-01-01T12:00:00.123Z"));
  return {
    written,
    logger: createLogger({ format: "json", level: "debug", destination, clock, ...options }),
  };
}

loggerContract("real", () => {
  const { written, logger } = collecting();
  const lines = () =>
    written.map((line) => {
      // A repeated key: the last one counts, as JSON.parse has it.
      const { level, message, time: _time, ...fields } = JSON.parse(line) as Record<string, unknown>;
      return { level: String(level), message: String(message), fields };
    });
  return { logger, lines };
});

loggerContract("virtual", () => {
  const logger = recordingLogger();
  return { logger, lines: () => logger.lines };
});

class CodedError extends Error {
  override readonly name = "CodedError";
  readonly code = "ENOSPC";
}

const failure = new Error("attach failed", {
  cause: new Error("disk is full", { cause: new CodedError("write") }),
});

describe("JSON form", () => {
  test("an error is written with name, code and the chain of its causes; the stack is the outermost's", () => {
    const { written, logger } = collecting();
    logger.error("giving up", { error: failure });
    const line = JSON.parse(written[0] ?? "");
    expect(line).toMatchObject({
      level: "error",
      time: "2026-01-01T12:00:00.123Z",
      message: "giving up",
      error: {
        name: "Error",
        message: "attach failed",
        stack: expect.stringContaining("logger.test.ts"),
        cause: { message: "disk is full", cause: { name: "CodedError", message: "write", code: "ENOSPC" } },
      },
    });
    expect(line.error.cause.stack).toBeUndefined();
  });

  test("lines below the level are dropped", () => {
    const { written, logger } = collecting({ level: "warn" });
    logger.info("no");
    logger.child({ a: 1 }).debug("no");
    logger.warn("yes");
    expect(written).toHaveLength(1);
    expect(written[0]?.endsWith("\n")).toBe(true);
  });
});

test("human form: one readable line", () => {
  const { written, logger } = collecting({ format: "human" });
  logger
    .child({ component: "node-agent" })
    .warn("mount failed", { volume: "vol-1", path: "/a b", error: failure });
  logger.info("ready", { count: 3 });
  expect(written).toEqual([
    '12:00:00.123 WARN  node-agent: mount failed volume=vol-1 path="/a b" error="attach failed: disk is full: write"\n',
    "12:00:00.123 INFO  ready count=3\n",
  ]);
});

test("human form: no field ends the line or steers the terminal", () => {
  const { written, logger } = collecting({ format: "human" });
  logger.info("from\nothers", { volume: "\x1b[2J", said: "a\u202eb c" });
  expect(written).toEqual(['12:00:00.123 INFO  from\\nothers volume=\\x1b[2J said="a\\u202eb c"\n']);
});

test("a tap sees recorded lines as they come", () => {
  const seen: string[] = [];
  const logger = recordingLogger((line) => seen.push(line.message));
  logger.child({ a: 1 }).info("one");
  logger.warn("two");
  expect(seen).toEqual(["one", "two"]);
});

test("the silent logger is silent to its children", () => {
  expect(silentLogger.child({ a: 1 })).toBe(silentLogger);
});

test("errorChain joins the messages of the causes, of any kind, and ends", () => {
  expect(errorChain(failure)).toBe("attach failed: disk is full: write");
  expect(errorChain("text")).toBe("text");
  expect(errorChain(new Error("a", { cause: "b" }))).toBe("a: b");
  const circular = new Error("again");
  circular.cause = circular;
  expect(errorChain(circular).split(": ")).toHaveLength(10);
});
