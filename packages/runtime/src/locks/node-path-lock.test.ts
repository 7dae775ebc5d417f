import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  lockDirectory,
  lockDirectoryWithFile,
  lockFile,
  PathLockedError,
  PathLockLostError,
} from "./node-path-lock.ts";

let base: string;
let dir: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "path-lock-"));
  dir = join(base, "data");
  mkdirSync(dir);
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(base, { recursive: true });
});

const source = new URL("./node-path-lock.ts", import.meta.url).href;
const tsx = import.meta.resolve("tsx");

/** Takes the lock, says so, and keeps it; or says why not and ends. Waits for a line on its input first. */
const program = `
  const { lockDirectoryWithFile } = await import(${JSON.stringify(source)});
  console.log("ready");
  process.stdin.once("data", () => {
    try {
      lockDirectoryWithFile(process.argv[1], "lock");
      console.log("held");
    } catch (error) {
      console.log(error.name + " " + error.message);
      process.exit(75);
    }
  });`;

interface Starter {
  readonly child: ChildProcess;
  next(): Promise<string>;
}

function start(directory = dir, before: readonly string[] = []): Starter {
  const argv = [
    ...before,
    process.execPath,
    "--import",
    tsx,
    "--input-type=module",
    "-e",
    program,
    directory,
  ];
  const [command = "", ...args] = argv;
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  if (child.stdout === null) throw new Error("no output");
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return { child, next: async () => String((await lines.next()).value) };
}

async function take(starter: Starter): Promise<string> {
  expect(await starter.next()).toBe("ready");
  starter.child.stdin?.write("go\n");
  return starter.next();
}

const lock = () => lockDirectoryWithFile(dir, "lock");

it("is one's alone, also within a process, and is let go without a trace", () => {
  const held = lock();
  expect(lock).toThrow(new PathLockedError(dir, `process ${process.pid}`));
  expect(() => lockDirectory(dir)).toThrow(PathLockedError);
  expect(() => lockFile(join(dir, "lock"))).toThrow(PathLockedError);
  held.check();
  held.release();
  expect(readdirSync(dir)).toEqual([]);
  lock().release();
});

it("is had by one of 30 processes that ask at the same time, whatever a killed one has left", async () => {
  const first = start();
  expect(await take(first)).toBe("held");
  first.child.kill("SIGKILL");
  await once(first.child, "exit");
  expect(readdirSync(dir)).toEqual(["lock"]);

  const starters = Array.from({ length: 30 }, () => start());
  for (const { next } of starters) expect(await next()).toBe("ready");
  for (const { child } of starters) child.stdin?.write("go\n");
  const said = await Promise.all(starters.map(({ next }) => next()));
  expect(said.filter((line) => line === "held")).toHaveLength(1);
  const refused = said.filter((line) => line !== "held");
  for (const line of refused) expect(line).toMatch(/^PathLockedError .*data is locked by /);
}, 120_000);

it("stays with a process that is stopped, and ends with one that is killed", async () => {
  const holder = start();
  expect(await take(holder)).toBe("held");
  holder.child.kill("SIGSTOP");
  expect(lock).toThrow(`${dir} is locked by process ${holder.child.pid}`);
  holder.child.kill("SIGKILL");
  await once(holder.child, "exit");
  lock().release();
});

it("is not had by the programs that its holder starts", async () => {
  const held = lock();
  const child = spawn(process.execPath, ["-e", "console.log('on'); setInterval(() => {}, 1000)"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  children.push(child);
  await once(child.stdout, "data");
  held.release();
  lock().release();
});

const mayUnshare =
  process.getuid?.() === 0 &&
  spawnSync("unshare", ["--pid", "--fork", "--mount-proc", "--net", "true"]).status === 0;

it.skipIf(!mayUnshare)(
  "holds across containers: other process ids, another network, a bind mount",
  async () => {
    const container = ["unshare", "--pid", "--fork", "--mount-proc", "--net", "--kill-child"];
    const bound = join(base, "bound");
    mkdirSync(bound);
    const there = [...container, "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', dir, bound];
    const inside = start(bound, there);
    expect(await take(inside)).toBe("held");
    // By its own count it is process 1, or one of the first.
    expect(lock).toThrow(/ is locked by process \d+ of .*, which is another machine or container$/);
    inside.child.kill("SIGKILL");
    await once(inside.child, "exit");
    // The processes of a container end a moment after the one that was killed.
    const held = await vi.waitFor(lock, 30_000);
    expect(await take(start(bound, there))).toMatch(
      /^PathLockedError .* is locked by process \d+ of .*, which is another/,
    );
    held.release();
  },
);

it("does not come along with a copy of the directory", () => {
  const held = lock();
  const copy = join(base, "copy");
  cpSync(dir, copy, { recursive: true });
  expect(readdirSync(copy)).toEqual(["lock"]);
  lockDirectoryWithFile(copy, "lock").release();
  held.release();
});

it("may be on a directory that is given by a link", () => {
  const link = join(base, "link");
  symlinkSync(dir, link);
  const held = lockDirectoryWithFile(link, "lock");
  held.check();
  expect(lock).toThrow(PathLockedError);
  held.release();
});

it("is not taken through a link that stands for its file", () => {
  const other = join(base, "other");
  writeFileSync(other, "kept");
  symlinkSync(other, join(dir, "lock"));
  expect(lock).toThrow("ELOOP");
  expect(readFileSync(other, "utf8")).toBe("kept");
  // Nothing of it is kept either.
  lockDirectory(dir).release();
});

it("keeps others out when its file was removed, and says that it is lost", () => {
  const held = lock();
  unlinkSync(join(dir, "lock"));
  expect(() => held.check()).toThrow(PathLockLostError);
  expect(lock).toThrow(PathLockedError);
  held.release();
});

it("is lost when the directory was moved away", () => {
  const held = lockDirectory(dir);
  renameSync(dir, join(base, "away"));
  expect(() => held.check()).toThrow(PathLockLostError);
  mkdirSync(dir);
  expect(() => held.check()).toThrow(`${dir} was removed or replaced`);
  held.release();
});
