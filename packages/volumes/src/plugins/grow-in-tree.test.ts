/** Growing in-tree file systems on machines that grow ext4 only unmounted. Source: docs/behaviour/node-agent.md 7.6. */
import { HostError, SimulatedHost } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { FailedPreconditionError } from "../framework/node-error-kind.ts";
import type { NodeExpandOptions } from "../framework/volume-plugin.ts";
import { growInTree } from "./grow-in-tree.ts";

const mebibyte = 2 ** 20;

/** A host with a disk that has grown, mounted at `/global`. */
async function aHost(code?: string) {
  const host = new SimulatedHost();
  for (const path of ["/global", "/pod"]) await host.makeDirectory(path);
  await host.truncateFile("/disk", mebibyte);
  const device = await host.attachLoop("/disk");
  await host.format(device, "ext4");
  await host.mountDevice(device, "/global", { fsType: "ext4" });
  await host.truncateFile("/disk", 2 * mebibyte);
  await host.attachLoop("/disk");
  if (code !== undefined) {
    host.growFileSystem = async () => {
      throw new HostError("growFileSystem", device, code);
    };
  }
  const grow = (over: Partial<NodeExpandOptions> = {}, volumeMode = "Filesystem") =>
    growInTree(
      host,
      {
        spec: {
          persistentVolume: { spec: { volumeMode } },
          readOnly: false,
          inlineVolumeSpecForCsiMigration: false,
        },
        devicePath: device,
        deviceMountPath: "/global",
        path: "/global",
        phase: "staged",
        newSizeBytes: BigInt(2 * mebibyte),
        ...over,
      },
      () => ({ fsType: "" }),
    );
  const bytes = async () => (await host.usage("/global")).totalBytes;
  return { host, grow, bytes };
}

describe("a file system", () => {
  it("grows while it is mounted", async () => {
    const { grow, bytes } = await aHost();
    expect(await grow()).toBe(true);
    expect(await bytes()).toBe(2 * mebibyte);
  });

  it("grows unmounted where it may not otherwise, and is mounted again", async () => {
    const { host, grow, bytes } = await aHost("EPERM");
    expect(await grow()).toBe(true);
    expect(await host.isMountPoint("/global")).toBe(true);
    expect(await bytes()).toBe(2 * mebibyte);
  });

  it.each<[string, Partial<NodeExpandOptions>]>([
    ["while a pod has it", {}],
    ["once it is published", { phase: "published", path: "/pod" }],
  ])("is not unmounted %s", async (_, over) => {
    const { host, grow, bytes } = await aHost("EPERM");
    await host.bindMount("/global", "/pod");
    await expect(grow(over)).rejects.toThrow(FailedPreconditionError);
    expect(await bytes()).toBe(mebibyte);
    expect(await host.listMounts("/pod")).toHaveLength(1);
  });

  it("whose growth fails otherwise is left as it is", async () => {
    const { host, grow } = await aHost("EIO");
    await expect(grow()).rejects.toThrow("EIO");
    expect(await host.isMountPoint("/global")).toBe(true);
  });
});

it("what is on a block volume is the pod's", async () => {
  const { grow, bytes } = await aHost();
  expect(await grow({}, "Block")).toBe(true);
  expect(await bytes()).toBe(mebibyte);
});
