import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import { hostContract } from "./host.contract.ts";
import { kernelHost } from "./kernel-host.ts";
import { SimulatedDisks } from "./simulated-disks.ts";
import { SimulatedHost } from "./simulated-host.ts";
import { unprivilegedHost } from "./unprivileged-host.ts";

const isRoot = process.getuid?.() === 0;

async function temporary() {
  const dir = await realpath(await mkdtemp(`${tmpdir()}/longshore-host-`));
  return { dir, close: () => rm(dir, { recursive: true, force: true }) };
}

hostContract("simulated", async () => {
  const disks = new SimulatedDisks();
  const host = new SimulatedHost({ name: "a", disks });
  const other = new SimulatedHost({ name: "b", disks });
  for (const each of [host, other]) await each.makeDirectory("/work");
  return { host, other, dir: "/work", close: async () => expect(disks.loops()).toEqual([]) };
});

hostContract("unprivileged", async () => ({ host: unprivilegedHost(), ...(await temporary()) }));

if (isRoot && process.platform === "linux") {
  hostContract("kernel", async () => ({ host: kernelHost(), ...(await temporary()) }));
} else {
  describe("host contract: kernel", () => {
    test.skip("needs root on Linux: loop devices and mounts", () => {});
  });
}
