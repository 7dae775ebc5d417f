import { FeatureGateError } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { behaviours, gates, groupVersions } from "./changes.ts";
import { EmulatedVersionError, emulatedVersion } from "./emulated-version.ts";

describe("the emulated version", () => {
  it.each([
    ["1.20", 20],
    ["v1.25.3", 25],
    [undefined, 36],
  ])("%s is 1.%i", (text, minor) => {
    expect(emulatedVersion(text)).toMatchObject({ minor, text: `1.${minor}` });
  });

  it.each(["1.19", "1.37", "2.0", "", "1.x"])("%j is refused", (text) => {
    expect(() => emulatedVersion(text)).toThrow(EmulatedVersionError);
  });

  it("has what came with it or before, and not what came later or has gone", () => {
    const [old, young] = [emulatedVersion("1.20"), emulatedVersion()];
    expect([old.has("aggregatedDiscovery"), young.has("aggregatedDiscovery")]).toEqual([false, true]);
    expect([old.has("storageCausesTwice"), young.has("storageCausesTwice")]).toEqual([true, false]);
    expect([
      old.serves("policy", "v1", "PodDisruptionBudget"),
      old.serves("policy", "v1beta1", "Eviction"),
    ]).toEqual([false, true]);
    expect(young.serves("policy", "v1beta1", "PodDisruptionBudget")).toBe(false);
    expect(young.serves("batch", "v1", "CronJob")).toBe(true);
    expect(old.serves("batch", "v1", "CronJob")).toBe(false);
  });

  it("has the gates of its version, and those that were asked for", () => {
    expect(emulatedVersion("1.20").gate("CSIStorageCapacity")).toBe(false);
    expect(emulatedVersion("1.21").gate("CSIStorageCapacity")).toBe(true);
    expect(emulatedVersion("1.20", "CSIMigration=false").gate("CSIMigration")).toBe(false);
    expect(emulatedVersion("1.20", { SomethingElse: true }).gate("SomethingElse")).toBe(true);
    expect(() => emulatedVersion("1.36", "CSIMigration=false")).toThrow(/locked to true/);
    expect(() => emulatedVersion("1.20", "CSIMigration=maybe")).toThrow(FeatureGateError);
  });

  it("knows only changes that make sense", () => {
    for (const { since = 0, until = 100 } of [
      ...(Object.values(behaviours) as { since?: number; until?: number }[]),
      ...Object.values(groupVersions),
    ]) {
      expect(until).toBeGreaterThan(since);
    }
    for (const gate of Object.values(gates)) expect(gate.default).toHaveProperty("20");
  });
});
