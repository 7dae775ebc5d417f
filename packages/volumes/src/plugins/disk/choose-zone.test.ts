import { describe, expect, it } from "vitest";
import { chooseZone, chooseZones, type ZoneRequest } from "./choose-zone.ts";

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

  it("of a regional disk are two, that of the selected node first", () => {
    expect(chooseZones({ ...request, selectedNodeLabels: { [zone]: "us-east-1b" } }, 2)).toEqual([
      "us-east-1b",
      expect.stringMatching(/us-east-1[ac]/),
    ]);
    const claims = ["data-web-0", "data-web-1", "data-web-2"];
    const all = claims.map((claimName) => chooseZones({ ...request, claimName }, 2));
    for (const zones of all) expect(new Set(zones).size).toBe(2);
    expect(new Set(all.flat()).size).toBe(3);
    expect(() => chooseZones({ ...request, parameterZones: ["a"] }, 2)).toThrow("needs 2 more zones");
  });
});
