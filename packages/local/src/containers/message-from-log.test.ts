import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@longshore/runtime/basics";
import { afterEach, beforeEach, expect, it } from "vitest";
import { stampedLine } from "./log-line.ts";
import { messageFromLog } from "./message-from-log.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longshore-message-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const { signal } = new AbortController();
const numbered = (count: number, text = "") => Array.from({ length: count }, (_, i) => `${i}${text}`);

it.each<[string, readonly string[], string | undefined]>([
  ["nothing", [], undefined],
  ["a few lines", ["a", "b"], "a\nb\n"],
  ["the last 80 lines", numbered(100), `${numbered(100).slice(-80).join("\n")}\n`],
  ["the last 2048 bytes", ["x".repeat(3000)], `${"x".repeat(2047)}\n`],
  ["whole characters", ["é".repeat(1500)], `${"é".repeat(1023)}\n`],
])("%s", async (_, lines, message) => {
  const file = join(dir, "log");
  writeFileSync(file, Buffer.concat(lines.map((line) => stampedLine(new Date(0), "stdout", line))));
  expect(await messageFromLog(systemClock, file, signal)).toBe(message);
});

it("no log", async () => {
  expect(await messageFromLog(systemClock, join(dir, "none"), signal)).toBeUndefined();
});
