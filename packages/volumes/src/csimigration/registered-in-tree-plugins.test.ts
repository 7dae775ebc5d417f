/** Which in-tree plugins are registered, by gates and phases; and the gates of each Kubernetes version. */
import { featureGates } from "@longshore/runtime";
import { migrationGates } from "@longshore/translation";
import { describe, expect, it } from "vitest";
import { inTreePlugins } from "../plugins/in-tree-plugins.ts";
import { createMigratedPluginManager, registeredInTreePlugins } from "./migrated-plugin-manager.ts";
import { unregisterGateOf, volumeGates, volumeGatesFor } from "./volume-gates.ts";

const all = inTreePlugins().map(({ pluginName }) => pluginName);

function missing(values: Readonly<Record<string, boolean>>): readonly string[] {
  const gates = featureGates(volumeGates, values);
  const registered = registeredInTreePlugins(inTreePlugins(), createMigratedPluginManager(gates));
  const names = registered.map(({ pluginName }) => pluginName);
  return all.filter((name) => !names.includes(name));
}

it("is about the plugins that can migrate, all of them", () => {
  expect([...all].sort()).toEqual(migrationGates.map(({ inTreeName }) => inTreeName).sort());
});

describe.each(migrationGates)("$inTreeName", (plugin) => {
  const { gate, completeGate, inTreeName } = plugin;
  const unregister = unregisterGateOf(plugin);
  // Source: docs/behaviour/volume-plugins.md 7.3, 7.4.
  it.each<[string, Readonly<Record<string, boolean>>, boolean]>([
    ["phase 0", {}, true],
    ["phase 1", { [gate]: true }, true],
    ["phase 2", { [gate]: true, [completeGate]: true }, false],
    ["phase 2 without phase 1", { [completeGate]: true }, true],
    ["phase 2 without the master switch", { CSIMigration: false, [gate]: true, [completeGate]: true }, true],
    ["phase 3, without migration", { [unregister]: true }, false],
    ["phase 3, without the master switch", { CSIMigration: false, [unregister]: true }, false],
    ["phase 3", { [gate]: true, [unregister]: true }, false],
  ])("%s", (_phase, values, isRegistered) => {
    expect(missing(values)).toEqual(isRegistered ? [] : [inTreeName]);
  });
});

describe("the gates of a version", () => {
  it("are Longshore's own at 1.20", () => {
    expect(volumeGatesFor("v1.20.2")).toEqual(volumeGates);
  });

  it.each<[string, readonly string[]]>([
    ["1.16", []],
    ["1.20", []],
    ["1.21", ["OpenStack"]],
    ["1.23", ["AWS", "AzureDisk", "GCE", "OpenStack"]],
    ["1.24", ["AWS", "AzureDisk", "AzureFile", "GCE", "OpenStack"]],
    ["1.25", ["AWS", "AzureDisk", "AzureFile", "GCE", "OpenStack", "vSphere"]],
    ["1.31", ["AWS", "AzureDisk", "AzureFile", "GCE", "OpenStack", "Portworx", "vSphere"]],
  ])("%s: on by default are those of %j", (version, on) => {
    const { values } = featureGates(volumeGatesFor(version));
    const names = Object.keys(values).filter(
      (name) => name.startsWith("CSIMigration") && values[name] && name !== "CSIMigration",
    );
    expect(names.sort()).toEqual(on.map((name) => `CSIMigration${name}`));
  });

  it.each<[string, string, object]>([
    ["1.22", "CSIMigrationAWS", { default: false, stage: "beta" }],
    ["1.24", "CSIMigrationAzureDisk", { default: true, stage: "GA" }],
    ["1.25", "CSIMigrationAzureDisk", { default: true, stage: "GA", locked: true }],
    ["1.28", "CSIMigrationRBD", { default: false, stage: "deprecated" }],
    ["1.31", "CSIMigrationRBD", { default: false, stage: "deprecated", locked: true }],
    ["1.20", "CSIMigrationvSphereComplete", { default: false, stage: "beta" }],
    ["1.21", "CSIMigrationAWSComplete", { default: false, stage: "alpha", locked: true }],
    ["1.25", "InTreePluginAWSUnregister", { default: false, stage: "alpha" }],
    ["1.31", "InTreePluginAWSUnregister", { default: false, stage: "alpha", locked: true }],
  ])("%s: %s", (version, name, expected) => {
    expect(volumeGatesFor(version)[name]).toEqual(expected);
  });

  it("do not take a value that a version has locked", () => {
    expect(() => featureGates(volumeGatesFor("1.27"), { CSIMigrationAWS: false })).toThrow("locked to true");
  });

  it.each(["", "2.0", "1", "1.x", "1.20beta"])("%j is not a version", (version) => {
    expect(() => volumeGatesFor(version)).toThrow("write 1.<minor>");
  });
});
