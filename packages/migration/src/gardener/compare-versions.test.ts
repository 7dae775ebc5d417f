import { describe, expect, it } from "vitest";
import { compareVersions, VersionError, type VersionOperator } from "./compare-versions.ts";

describe("versions are compared as Gardener does (migration-controllers.md A5)", () => {
  it.each<[string, VersionOperator, string, boolean]>([
    ["1.18.0", "~", "1.18", true],
    ["1.18.9", "~", "1.18", true],
    ["1.19.0", "~", "1.18", false],
    ["1.17.9", "~", "1.18", false],
    ["1.18.4", "~", "1.18.5", false],
    ["1.18.5", "~", "1.18.5", true],
    ["1.19.0", "~", "1.18.5", false],
    ["2.18.0", "~", "1.18", false],
    ["1.99.0", "~", "1", true],
    ["1.18.4", ">=", "1.18.5", false],
    ["1.18", ">=", "1.18.0", true],
    ["1.18.5", ">", "1.18", false],
    ["1.19.0", ">", "1.18", true],
    ["1.18.5", ">", "1.18.4", true],
    ["1.18.5", "<=", "1.18", true],
    ["1.18.5", "<=", "1.18.4", false],
    ["1.18.5", "<", "1.18", false],
    ["1.17.99", "<", "1.18", true],
    ["1.100.0", ">", "1.99", true],
    ["v1.18.9-gke.100+abc", "~", "1.18", true],
    ["1.18.0-rc.1", ">=", "v1.18", true],
    ["1.18.9+build.7", "~", "1.18.9", true],
  ])("%s %s %s: %s", (version, operator, other, holds) => {
    expect(compareVersions(version, operator, other)).toBe(holds);
  });

  it.each(["", "v", "one", "1.x", "1.18.5.1", "-1.18", "99999999999.1", "1..2"])(
    "%j is no version",
    (text) => {
      expect(() => compareVersions(text, ">=", "1.18")).toThrow(VersionError);
      expect(() => compareVersions("1.18", ">=", text)).toThrow(`"${text}" is not a version`);
    },
  );
});
