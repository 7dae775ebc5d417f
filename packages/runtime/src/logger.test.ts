import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { loggerContract } from "./logger.contract.ts";
import { errorChain, silentLogger } from "./logger.ts";
import { recordingLogger } from "./logger-recording.ts";
import { createLogger, type LoggerOptions } from "./node-logger.ts";
import { VirtualClock } from "./virtual-clock.ts";

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

describe("what JSON refuses", () => {
  test("becomes text, wherever it stands", () => {
    const { written, logger } = collecting();
    const circular: Record<string, unknown> = { twice: 1 };
    circular.self = { again: circular };
    const shared = { a: 1n };
    logger.child({ circular }).info("odd", { both: [shared, shared], big: 2n ** 64n });
    expect(JSON.parse(written[0] ?? "")).toMatchObject({
      circular: { twice: 1, self: { again: "[circular]" } },
      both: [{ a: "1" }, { a: "1" }],
      big: "18446744073709551616",
      message: "odd",
    });
  });

  test("is told of, where it fails to be written", () => {
    const { written, logger } = collecting();
    const refusing = {
      toJSON: () => {
        throw new Error("no");
      },
    };
    logger.info("odd", { volume: "v", refusing });
    expect(JSON.parse(written[0] ?? "")).toMatchObject({
      unwritable: "volume,refusing",
      because: "Error: no",
      message: "odd",
    });
  });

  test("a line is one line, whatever its message", () => {
    const { written, logger } = collecting();
    logger.info('a "quoted"\nmessage\u2028', { "a\nfield": "b\nvalue" });
    expect(written[0]?.indexOf("\n")).toBe((written[0]?.length ?? 0) - 1);
    expect(JSON.parse(written[0] ?? "")).toMatchObject({
      message: 'a "quoted"\nmessage\u2028',
      "a\nfield": "b\nvalue",
    });
  });
});

test("lines that nobody reads for a while all arrive, in order; without a reader nothing fails", async () => {
  const count = 4000; // Far more than a pipe holds.
  const entry = new URL("./node-logger.ts", import.meta.url).href;
  const program = `
    const { createLogger } = await import(${JSON.stringify(entry)});
    const logger = createLogger({ format: "json", level: "info" });
    for (let n = 0; n < ${count}; n++) logger.info("x".repeat(100), { n });
    process.stdout.write("done");`;
  const start = () =>
    spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "pipe"],
    });
  const read = start();
  let text = "";
  read.stderr.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  await once(read, "close");
  const seen = text
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly n: number }).n);
  expect(seen).toEqual(Array.from({ length: count }, (_, n) => n));

  const unread = start();
  unread.stderr.destroy();
  let said = "";
  unread.stdout.setEncoding("utf8").on("data", (part: string) => {
    said += part;
  });
  const [code] = await once(unread, "close");
  expect([code, said]).toEqual([0, "done"]);
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
