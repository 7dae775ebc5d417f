import { expect, it } from "vitest";
import { gateTable } from "./gate-table.ts";

const cinder = "kubernetes.io/cinder";
const shown = (version: string, plugin?: string) =>
  gateTable(version, plugin).map((row) => [row.gate, row.stage, row.default, row.locked]);

// Source: docs/behaviour/migration-controllers.md D1.
it("has the master switch and the gates of one plugin at a version", () => {
  expect(shown("1.22", cinder)).toEqual([
    ["CSIMigration", "beta", true, false],
    ["CSIMigrationOpenStack", "beta", true, false],
    ["CSIMigrationOpenStackComplete", "removed", false, true],
    ["InTreePluginOpenStackUnregister", "alpha", false, false],
  ]);
  expect(gateTable("v1.22.3", cinder)[1]).toMatchObject({
    plugin: cinder,
    history: { alpha: 14, beta: 18, onByDefault: 21, ga: 24, locked: 24, removed: 26 },
  });
});

it.each<[string, string, string, boolean]>([
  ["1.13", "CSIMigration", "notYet", false],
  ["1.17", "CSIMigrationvSphere", "notYet", false],
  ["1.18", "CSIMigrationvSphere", "alpha", false],
  ["1.18", "CSIMigrationvSphereComplete", "notYet", false],
  ["1.19", "CSIMigrationvSphereComplete", "beta", false],
  ["1.24", "CSIMigrationOpenStack", "GA", true],
  ["1.26", "CSIMigrationOpenStack", "removed", true],
  ["1.28", "CSIMigrationRBD", "deprecated", false],
  ["1.22", "InTreePluginRBDUnregister", "notYet", false],
  ["1.25", "CSIMigrationRBDComplete", "ownOnly", false],
])("%s: %s is %s, by default %s", (version, gate, stage, isOn) => {
  const row = gateTable(version).find((each) => each.gate === gate);
  expect(row).toMatchObject({ stage, default: isOn });
});

it("refuses what is not a version", () => {
  expect(() => gateTable("next")).toThrow("write 1.<minor>");
});
