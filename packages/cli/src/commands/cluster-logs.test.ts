import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loggedProcesses, showLog } from "./cluster-logs.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longshore-logs-"));
  writeFileSync(join(dir, "apiserver.log"), "one\ntwo\nthree\n");
  writeFileSync(join(dir, "disk-cloud.log"), "no end");
});
afterEach(() => rmSync(dir, { recursive: true }));

const { signal } = new AbortController();
async function shown(name: string, tail?: number): Promise<string> {
  let text = "";
  const choice = { follow: false, ...(tail === undefined ? {} : { tail }) };
  const write = (more: string) => {
    text += more;
  };
  await showLog(dir, name, choice, write, signal);
  return text;
}

test.each([
  ["all", undefined, "one\ntwo\nthree\n"],
  ["the last two lines", 2, "two\nthree\n"],
  ["no more than there are", 9, "one\ntwo\nthree\n"],
  ["none", 0, ""],
])("%s of a log", async (_, tail, expected) => {
  expect(await shown("apiserver", tail)).toBe(expected);
});

test("a log that begins with an empty line is shown from there", async () => {
  writeFileSync(join(dir, "disk-cloud.log"), "\none\ntwo\n");
  expect(await shown("disk-cloud", 9)).toBe("\none\ntwo\n");
  expect(await shown("disk-cloud", 2)).toBe("one\ntwo\n");
});

test("a last line without an end is shown; characters that steer a terminal are not", async () => {
  expect(await shown("disk-cloud")).toBe("no end\n");
  writeFileSync(join(dir, "disk-cloud.log"), "a\u001b[31mb\n");
  expect(await shown("disk-cloud")).toBe("a\\x1b[31mb\n");
});

test("a name that no process has is refused with those there are", async () => {
  expect(loggedProcesses(dir)).toEqual(["apiserver", "disk-cloud"]);
  await expect(shown("kubelet")).rejects.toThrow(
    'no process "kubelet" has a log: choose one of apiserver, disk-cloud',
  );
});

test("followed, what is written later is shown, whole lines only, until it is interrupted", async () => {
  const interrupt = new AbortController();
  let text = "";
  const following = showLog(
    dir,
    "apiserver",
    { follow: true, tail: 0 },
    (more) => {
      text += more;
      if (text === "four\n") appendFileSync(join(dir, "apiserver.log"), "e\n");
      if (text.includes("five")) interrupt.abort();
    },
    interrupt.signal,
  );
  appendFileSync(join(dir, "apiserver.log"), "four\nfiv");
  await following;
  expect(text).toBe("four\nfive\n");
});
