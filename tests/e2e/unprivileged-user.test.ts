/**
 * The unprivileged host as a user without any right: the test drops its own rights for as long as it runs.
 * Where it has none to begin with, the contract's ordinary run says the same.
 */
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hostContract } from "../../packages/runtime/src/host/host.contract.ts";
import { unprivilegedHost } from "../../packages/runtime/src/host/unprivileged-host.ts";

const unprivilegedId = 65534;
const isRoot = process.geteuid?.() === 0;

describe.skipIf(!isRoot)("as the user `nobody`", () => {
  beforeAll(() => {
    process.setegid?.(unprivilegedId);
    process.seteuid?.(unprivilegedId);
  });
  afterAll(() => {
    process.seteuid?.(0);
    process.setegid?.(0);
  });

  test("the rights are gone", async () => {
    const dir = await mkdtemp(`${tmpdir()}/longshore-unprivileged-`);
    await expect(writeFile("/etc/longshore-must-not-be", "")).rejects.toThrow("EACCES");
    await rm(dir, { recursive: true });
  });

  hostContract("unprivileged", async () => {
    const dir = await realpath(await mkdtemp(`${tmpdir()}/longshore-unprivileged-`));
    return { host: unprivilegedHost(), dir, close: () => rm(dir, { recursive: true, force: true }) };
  });
});
