/** The standard input of a container through a real named pipe. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { feedContainer, makeContainerInput, openContainerInput } from "./container-input.ts";

let dir: string;
let path: string;
let input: Socket;
let signal: AbortSignal;
let stop: AbortController;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longshore-input-"));
  path = join(dir, "stdin");
  stop = new AbortController();
  signal = stop.signal;
});
afterEach(() => {
  stop.abort();
  input?.destroy();
  rmSync(dir, { recursive: true, force: true });
});

function makeContainer(once: boolean): PassThrough {
  const stdin = new PassThrough();
  input = makeContainerInput(path, once);
  feedContainer(input, stdin);
  return stdin;
}

async function nextOf(stdin: PassThrough): Promise<string> {
  for (;;) {
    const chunk = stdin.read() as Buffer | null;
    if (chunk !== null) return String(chunk);
    await new Promise((resolve) => stdin.once("readable", resolve));
  }
}

test("the pipe is this user's alone, and a file that lies there is replaced", () => {
  writeFileSync(path, "", { mode: 0o644 });
  makeContainer(false);
  expect(statSync(path).isFIFO()).toBe(true);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("one client after another is read, and the input stays open", async () => {
  const stdin = makeContainer(false);
  for (const said of ["first", "second"]) {
    const client = openContainerInput(path, signal);
    await client?.write(Buffer.from(said));
    client?.endInput();
    expect(await nextOf(stdin)).toBe(said);
  }
  expect(stdin.readableEnded).toBe(false);
});

test("`stdinOnce`: it begins with the first client, ends with it, and takes no other", async () => {
  const stdin = makeContainer(true);
  const all = text(stdin);
  const client = openContainerInput(path, signal);
  const large = "0123456789abcdef".repeat(16 * 1024);
  await client?.write(Buffer.from(large));
  client?.endInput();
  expect(await all).toBe(large);
  await expect.poll(() => openContainerInput(path, signal)).toBeUndefined();
});

test("a client that goes away ends the input of `stdinOnce`", async () => {
  const all = text(makeContainer(true));
  await openContainerInput(path, signal)?.write(Buffer.from("x"));
  stop.abort();
  expect(await all).toBe("x");
});

test("who writes to a program that reads no more does not wait for it", async () => {
  const stdin = makeContainer(false);
  const client = openContainerInput(path, signal);
  // More than the pipe and both buffers hold: it waits.
  const waiting = client?.write(Buffer.alloc(1024 * 1024));
  stdin.destroy();
  await waiting;
});

test("a container without input has none", () => {
  expect(openContainerInput(path, signal)).toBeUndefined();
});
