import { SimulatedHost } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { clusterConfig } from "./cluster-config.ts";
import { clusterLayout } from "./cluster-layout.ts";
import { readClusterConfig, writeClusterConfig } from "./files.ts";
import { readStoredConfig } from "./stored-config.ts";

const {
  version: _,
  plugins: __,
  ...rest
} = clusterConfig(1, "kernel", { port: 7000, compat: "kubernetes-1.20" });
const version1 = { ...rest, version: 1, driverName: "ebs.csi.aws.com" };

describe("a stored configuration", () => {
  it("is read as it was written", async () => {
    const host = new SimulatedHost({ name: "operator" });
    const layout = clusterLayout("/c");
    await host.makeDirectory("/c");
    const config = clusterConfig(3, "unprivileged", { plugins: ["gce-pd", "rbd"] });
    await writeClusterConfig(host, layout, config);
    expect(await readClusterConfig(host, layout)).toEqual(config);
  });

  it("of version 1 has the plugin of its driver", () => {
    expect(readStoredConfig(version1)).toEqual({ ...rest, version: 2, plugins: ["aws-ebs"] });
  });

  it("of version 1 keeps the user's own driver, whatever its name", () => {
    const driverCommand = ["./driver", "{endpoint}"];
    const own = (driverName: string) => readStoredConfig({ ...version1, driverName, driverCommand });
    expect(own("ebs.csi.aws.com")).toMatchObject({
      plugins: ["aws-ebs"],
      ownDriver: { name: "ebs.csi.aws.com", command: driverCommand },
    });
    expect(own("disk.example.com")).toMatchObject({
      plugins: ["aws-ebs"],
      ownDriver: { name: "disk.example.com", command: driverCommand },
    });
    expect(own("disk.example.com")).not.toHaveProperty("driverName");
  });

  it.each([
    ["no object", 7],
    ["no version", { nodes: [] }],
    ["no nodes", { ...version1, nodes: undefined }],
    ["no driver", { ...version1, driverName: undefined }],
    ["no plugins", { ...version1, version: 2, plugins: [] }],
    ["a plugin that is none", { ...version1, version: 2, plugins: ["aws-ebs", "floppy"] }],
  ])("with %s is none", (_what, stored) => {
    expect(readStoredConfig(stored)).toBeUndefined();
  });

  it("of a later version is refused, with the remedy", async () => {
    const host = new SimulatedHost({ name: "operator" });
    await host.makeDirectory("/c");
    await host.writeFileAtomic("/c/cluster.json", JSON.stringify({ ...version1, version: 3 }));
    await expect(readClusterConfig(host, clusterLayout("/c"))).rejects.toThrow(
      /cluster\.json was written by a newer version of Longshore: use that one/,
    );
  });
});
