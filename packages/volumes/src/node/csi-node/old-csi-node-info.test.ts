/** The forms that CSINodeInfo has had. Source: docs/behaviour/node-agent.md 2.1. */
import { describe, expect, it } from "vitest";
import { type CSINodeInfo, oldDriversOf } from "./old-csi-node-info.ts";

const metadata = { name: "n" };
const of = (fields: object) => oldDriversOf({ metadata, ...fields } as CSINodeInfo);
const withKeys = { nodeID: "i-1", topologyKeys: ["d/zone", "d/rack"] };
const carried = { name: "d", nodeID: "i-1", topologyKeys: ["d/rack", "d/zone"] };

describe("the drivers of a CSINodeInfo", () => {
  it.each<[string, object]>([
    ["csiDrivers[].driver", { csiDrivers: [{ driver: "d", ...withKeys }] }],
    ["spec.drivers[].name", { spec: { drivers: [{ name: "d", ...withKeys }] } }],
    ["csiDrivers[].name", { csiDrivers: [{ name: "d", ...withKeys }] }],
    [
      "spec.drivers before csiDrivers",
      {
        csiDrivers: [{ driver: "d", nodeID: "old" }],
        spec: { drivers: [{ name: "d", ...withKeys }] },
      },
    ],
    [
      "not those without a node ID",
      {
        csiDrivers: [
          { driver: "none", topologyKeys: ["d/zone"] },
          { driver: "empty", nodeID: "" },
          { driver: "null", nodeID: null },
          { driver: "d", ...withKeys },
        ],
      },
    ],
    [
      "each key once",
      { csiDrivers: [{ name: "d", nodeID: "i-1", topologyKeys: ["d/zone", "d/rack", "d/zone"] }] },
    ],
  ])("are %s", (_name, fields) => {
    expect(of(fields)).toEqual({ drivers: [carried] });
  });

  it.each<[string, object]>([
    ["nothing", {}],
    ["null", { csiDrivers: null, spec: null }],
    ["a spec of null", { spec: { drivers: null } }],
    ["empty lists", { csiDrivers: [], spec: { drivers: [] } }],
  ])("are none where there is %s", (_name, fields) => {
    expect(of(fields)).toEqual({ drivers: [] });
  });

  it("need no topology", () => {
    const drivers = [{ driver: "d", nodeID: "i-1", topologyKeys: null }];
    expect(of({ csiDrivers: drivers })).toEqual({ drivers: [{ name: "d", nodeID: "i-1" }] });
  });

  it.each<[string, object]>([
    ["csiDrivers must be a list", { csiDrivers: { driver: "d" } }],
    ["csiDrivers[1] must be an object", { csiDrivers: [{ driver: "d", nodeID: "i-1" }, "e"] }],
    ["csiDrivers[0].name must be a string", { csiDrivers: [{ nodeID: "i-1" }] }],
    ["csiDrivers[0].driver must not be empty", { csiDrivers: [{ driver: "", nodeID: "i-1" }] }],
    ["csiDrivers[0].nodeID must be a string", { csiDrivers: [{ driver: "d", nodeID: 1 }] }],
    ["spec must be an object", { csiDrivers: [{ driver: "d", nodeID: "i-1" }], spec: "s" }],
    ["spec.drivers must be a list", { spec: { drivers: "d" } }],
    ["spec.drivers[0].name must be a string", { spec: { drivers: [{ driver: "d", nodeID: "i-1" }] } }],
    [
      "spec.drivers[0].topologyKeys[0] must be a string",
      { spec: { drivers: [{ name: "d", nodeID: "i-1", topologyKeys: [1] }] } },
    ],
  ])("are not taken when malformed: %s", (malformed, fields) => {
    expect(of(fields)).toEqual({ malformed });
  });
});
