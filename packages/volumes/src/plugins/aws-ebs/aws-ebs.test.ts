import { describe, expect, it } from "vitest";
import { DanglingAttachError, DeletedVolumeInUseError } from "../../framework/controller-errors.ts";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { awsEbsPlugin } from "./aws-ebs-plugin.ts";
import { chooseZone, regionOfZone, type ZoneRequest } from "./choose-zone.ts";
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

describe("the zone of a new volume", () => {
  const request: ZoneRequest = {
    parameterZones: undefined,
    allowedTopologies: [],
    selectedNodeLabels: undefined,
    zonesWithNodes: ["us-east-1c", "us-east-1a", "us-east-1b"],
    claimName: "c",
  };
  const zone = "topology.kubernetes.io/zone";
  it("spreads the claims of a set over the zones, those of one pod together", () => {
    const at = (claimName: string) => chooseZone({ ...request, claimName });
    expect(new Set([at("data-web-0"), at("data-web-1"), at("data-web-2")]).size).toBe(3);
    expect(at("log-web-1")).toBe(at("data-web-1"));
  });
  it.each<[string, Partial<ZoneRequest>, string]>([
    ["the selected node", { selectedNodeLabels: { [zone]: "us-east-1b" } }, "us-east-1b"],
    [
      "the selected node's beta label",
      { selectedNodeLabels: { "failure-domain.beta.kubernetes.io/zone": "us-east-1b" } },
      "us-east-1b",
    ],
    ["the class's parameter", { parameterZones: ["us-east-1c"] }, "us-east-1c"],
    [
      "allowed topologies",
      { allowedTopologies: [{ matchLabelExpressions: [{ key: zone, values: ["us-east-1a"] }] }] },
      "us-east-1a",
    ],
  ])("%s", (_name, fields, expected) => {
    expect(chooseZone({ ...request, ...fields })).toBe(expected);
  });
  it.each<[string, Partial<ZoneRequest>, string]>([
    ["no zone at all", { zonesWithNodes: [] }, "no zone"],
    ["a node without a zone", { selectedNodeLabels: {} }, "has no label"],
    [
      "both ways of naming zones",
      {
        parameterZones: ["a"],
        allowedTopologies: [{ matchLabelExpressions: [{ key: zone, values: ["a"] }] }],
      },
      "cannot be specified",
    ],
    [
      "an unknown key",
      { allowedTopologies: [{ matchLabelExpressions: [{ key: "rack", values: ["1"] }] }] },
      "rack",
    ],
  ])("refuses %s", (_name, fields, message) => {
    expect(() => chooseZone({ ...request, ...fields })).toThrow(message);
  });
  it("has a region", () => {
    expect([regionOfZone("us-east-1a"), regionOfZone("local")]).toEqual(["us-east-1", "local"]);
  });
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
