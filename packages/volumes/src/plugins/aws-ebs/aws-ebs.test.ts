import { describe, expect, it } from "vitest";
import { DanglingAttachError, DeletedVolumeInUseError } from "../../framework/controller-errors.ts";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { awsEbsPlugin } from "./aws-ebs-plugin.ts";
import { regionOfZone } from "./ebs-provisioning.ts";
import { diskIdOf } from "./ebs-volume-id.ts";

const { signal } = new AbortController();

describe("volume ids", () => {
  it.each([
    ["vol-1", "vol-1"],
    ["aws://us-east-1a/vol-1", "vol-1"],
    ["aws:///vol-1", "vol-1"],
  ])("%s", (volumeID, id) => {
    expect(diskIdOf(volumeID)).toBe(id);
  });
  it.each(["", "disk-1", "aws://us-east-1a/", "aws://z/vol-1/x"])("refuses %j", (volumeID) => {
    expect(() => diskIdOf(volumeID)).toThrow("expected vol-");
  });
});

it("has a region", () => {
  expect([regionOfZone("us-east-1a"), regionOfZone("local")]).toEqual(["us-east-1", "local"]);
});

describe("the plugin", () => {
  const spec = specOfPersistentVolume(
    { metadata: { name: "pv" }, spec: { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1" } } },
    false,
  );
  it("says which node has a disk that cannot be attached", async () => {
    const cloud = new FakeCloud(["n1", "n2"]);
    const plugin = awsEbsPlugin({ cloud });
    expect(await plugin.newAttacher().attach(spec, "n1", signal)).toBe("/dev/vol-1");
    expect(await plugin.newAttacher().attach(spec, "n1", signal)).toBe("/dev/vol-1");
    const error = await plugin
      .newAttacher()
      .attach(spec, "n2", signal)
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(DanglingAttachError);
    expect((error as DanglingAttachError).currentNode).toBe("n1");
    await expect(plugin.newDeleter(spec).delete(signal)).rejects.toThrow(DeletedVolumeInUseError);
    await plugin.newDetacher().detach("aws://us-east-1a/vol-1", "n1", signal);
    await plugin.newDetacher().detach("aws://us-east-1a/vol-1", "gone", signal);
    expect(cloud.nodeOf("vol-1")).toBeUndefined();
  });
  it("fails as Kubernetes' does where there is no cloud", () => {
    expect(() => awsEbsPlugin().newAttacher()).toThrow("Failed to get AWS Cloud Provider");
  });
});
