import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type LogQuery, readLogFile } from "./read-log-file.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longshore-log-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));
/** Time passes at once. */
const clock = { sleep: async () => {} };
const signal = new AbortController().signal;

async function read(query: Partial<LogQuery>, text: string | undefined): Promise<string> {
  const path = join(dir, "log");
  if (text !== undefined) writeFileSync(path, text);
  let found = "";
  const log = readLogFile(clock, path, { follow: false, ...query }, async () => true, signal);
  for await (const bytes of log) found += Buffer.from(bytes).toString();
  return found;
}

const long = `${"x".repeat(100_000)}\n`;
it.each<[string, Partial<LogQuery>, string | undefined, string]>([
  ["all of it", {}, "a\nb\n", "a\nb\n"],
  ["nothing of a file that is not there", {}, undefined, ""],
  ["the last line", { tailLines: 1 }, "a\nb\n", "b\n"],
  ["the last line, which has no end", { tailLines: 1 }, "a\nb", "b"],
  ["from a byte on", { startByte: 2 }, "a\nb\n", "b\n"],
  ["no line", { tailLines: 0 }, "a\nb\n", ""],
  ["more lines than there are", { tailLines: 9 }, "a\nb\n", "a\nb\n"],
  ["long lines", { tailLines: 2 }, `a\n${long}${long}`, `${long}${long}`],
  ["what is followed of a container that has ended", { follow: true }, "a\n", "a\n"],
])("%s", async (_name, query, text, expected) => expect(await read(query, text)).toBe(expected));

it("what is written later, also into a file that is not there yet, until the end", async () => {
  const path = join(dir, "log");
  const writes = [() => {}, () => writeFileSync(path, "a\n"), () => appendFileSync(path, "b\n")];
  const hasEnded = async () => {
    writes.shift()?.();
    return writes.length === 0;
  };
  let found = "";
  const log = readLogFile(clock, path, { follow: true }, hasEnded, signal);
  for await (const bytes of log) found += Buffer.from(bytes).toString();
  expect(found).toBe("a\nb\n");
});
