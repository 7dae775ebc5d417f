import { describe, expect, it } from "vitest";
import { isMultiAttachAllowed, splitUniqueName, UniqueNameError } from "./unique-volume-name.ts";
import { specOfPersistentVolume, specOfVolume } from "./volume-spec.ts";

describe("splitUniqueName", () => {
  it.each([
    ["kubernetes.io/csi/d.example^h", "kubernetes.io/csi", "d.example^h"],
    ["kubernetes.io/aws-ebs/aws://us-east-1a/vol-1", "kubernetes.io/aws-ebs", "aws://us-east-1a/vol-1"],
    ["kubernetes.io/x/", "kubernetes.io/x", ""],
  ])("%s", (name, pluginName, volumeName) => {
    expect(splitUniqueName(name)).toEqual({ pluginName, volumeName });
  });
  it.each(["", "a", "a/b"])("refuses %j", (name) => {
    expect(() => splitUniqueName(name)).toThrow(UniqueNameError);
  });
});

describe("isMultiAttachAllowed", () => {
  const pv = (accessModes?: string[]) =>
    specOfPersistentVolume({ spec: accessModes === undefined ? {} : { accessModes } }, false);
  it.each([
    ["nothing known", undefined, true],
    ["a PV without modes", pv(), true],
    ["ReadWriteOnce", pv(["ReadWriteOnce"]), false],
    ["ReadWriteOnce and ReadOnlyMany", pv(["ReadWriteOnce", "ReadOnlyMany"]), true],
    ["ReadWriteMany", pv(["ReadWriteMany"]), true],
    ["ReadWriteOncePod", pv(["ReadWriteOncePod"]), false],
    ["an inline EBS volume", specOfVolume({ name: "v", awsElasticBlockStore: { volumeID: "vol-1" } }), true],
    ["an inline Cinder volume", specOfVolume({ name: "v", cinder: { volumeID: "x" } }), false],
    ["an inline Azure disk", specOfVolume({ name: "v", azureDisk: { diskName: "d", diskURI: "u" } }), false],
  ])("%s", (_name, spec, allowed) => {
    expect(isMultiAttachAllowed(spec)).toBe(allowed);
  });
});
