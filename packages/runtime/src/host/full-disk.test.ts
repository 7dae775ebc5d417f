/** Files on a disk that is full: what was there stays, whole. Needs root for a small file system. */
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { kernelHost } from "./kernel-host.ts";
import { unprivilegedHost } from "./unprivileged-host.ts";

const isRoot = process.platform === "linux" && process.getuid?.() === 0;

describe.skipIf(!isRoot).each([
  ["kernel", kernelHost()],
  ["unprivileged", unprivilegedHost()],
])("on a full disk, the %s host", (_form, host) => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "longshore-full-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", dir]);
  });
  afterEach(() => {
    execFileSync("umount", [dir]);
    rmSync(dir, { recursive: true, force: true });
  });

  /** Leaves so many pages of 4 KiB. */
  function fillBut(pages: number): void {
    const file = openSync(`${dir}/ballast`, "w");
    try {
      for (;;) writeSync(file, Buffer.alloc(4096));
    } catch {
      closeSync(file);
    }
    execFileSync("truncate", ["-s", `-${pages * 4096}`, `${dir}/ballast`]);
  }

  test("replaces a file as a whole or not at all, and leaves nothing beside it", async () => {
    await host.writeFileAtomic(`${dir}/state`, "old");
    fillBut(1);
    const large = host.writeFileAtomic(`${dir}/state`, "x".repeat(64 * 1024));
    await expect(large).rejects.toMatchObject({ code: "ENOSPC" });
    expect(await host.readFile(`${dir}/state`)).toBe("old");
    expect(readdirSync(dir).sort()).toEqual(["ballast", "state"]);
  });

  test("appends all of a line or nothing", async () => {
    await host.appendFileDurable(`${dir}/log`, "one\n");
    fillBut(1);
    const large = host.appendFileDurable(`${dir}/log`, `${"x".repeat(64 * 1024)}\n`);
    await expect(large).rejects.toMatchObject({ code: "ENOSPC" });
    expect(await host.readFile(`${dir}/log`)).toBe("one\n");
    await host.removeFile(`${dir}/ballast`);
    await host.appendFileDurable(`${dir}/log`, "two\n");
    expect(await host.readFile(`${dir}/log`)).toBe("one\ntwo\n");
  });
});
