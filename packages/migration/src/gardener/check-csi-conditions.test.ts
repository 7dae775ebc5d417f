import { describe, expect, it } from "vitest";
import { checkCSIConditions } from "./check-csi-conditions.ts";
import { annotationKeyKubernetesVersion, annotationKeyNeedsComplete, type Cluster } from "./cluster.ts";

function aCluster(version: unknown, annotations: Record<string, string> = {}): Cluster {
  const kubernetes = { version };
  return {
    metadata: { name: "shoot--p--a", annotations },
    spec: {
      shoot: {
        metadata: { name: "a", annotations: { [annotationKeyKubernetesVersion]: "1.30" } },
        spec: { provider: { type: "aws" }, kubernetes },
      },
    },
  };
}

const complete = { [annotationKeyNeedsComplete]: "false" };

describe("what an extension configures (migration-controllers.md A6)", () => {
  it.each([
    ["lower", "1.17.9", {}, false, false],
    ["lower, annotated", "1.17.9", complete, false, false],
    ["the same minor version", "1.18.2", {}, true, false],
    ["the same minor version, annotated with any value", "1.18.2", complete, true, true],
    ["higher", "1.19.0", {}, true, true],
    ["higher, annotated", "1.19.0", complete, true, true],
  ] as const)("%s", (_, version, annotations, useCSI, csiMigrationComplete) => {
    const found = checkCSIConditions(aCluster(version, annotations), "1.18");
    expect(found).toEqual({ useCSI, csiMigrationComplete });
  });

  it("a version that is none is an error", () => {
    expect(() => checkCSIConditions(aCluster("latest"), "1.18")).toThrow('"latest" is not a version');
    expect(() => checkCSIConditions(aCluster("1.18.0"), "soon")).toThrow('"soon" is not a version');
  });

  it.each([
    ["no Shoot", {}, "spec.shoot is missing"],
    ["a Shoot that is a text", { shoot: "a" }, "spec.shoot must be an object"],
    ["no version", aCluster(undefined).spec, "spec.shoot.spec.kubernetes.version is missing"],
    [
      "a version that is a number",
      aCluster(1.18).spec,
      "spec.shoot.spec.kubernetes.version must be a string",
    ],
  ])("%s is an error that names the field", (_, spec, message) => {
    const cluster = { metadata: { name: "shoot--p--a" }, ...(spec === undefined ? {} : { spec }) };
    expect(() => checkCSIConditions(cluster, "1.18")).toThrow(`Cluster shoot--p--a: ${message}`);
  });
});
