/** The rule of the default class, as tables. */
import type { StorageClass, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { leavesClassOpen, newestDefaultClass } from "./default-class.ts";

const of = (name: string, creationTimestamp: string, isDefault?: string) =>
  ({
    metadata: {
      name,
      uid: name,
      resourceVersion: "1",
      creationTimestamp,
      ...(isDefault === undefined
        ? {}
        : { annotations: { "storageclass.kubernetes.io/is-default-class": isDefault } }),
    },
    provisioner: "kubernetes.io/aws-ebs",
  }) as Stored<StorageClass>;

describe("the default class", () => {
  it.each([
    ["none", [of("a", "2026-01-01T00:00:00Z"), of("b", "2026-01-01T00:00:00Z", "false")], undefined],
    ["one", [of("a", "2026-01-01T00:00:00Z"), of("b", "2026-01-01T00:00:00Z", "true")], "b"],
    ["the newest", [of("a", "2026-01-01T00:00:01Z", "true"), of("b", "2026-01-01T00:00:00Z", "true")], "a"],
    ["by name", [of("b", "2026-01-01T00:00:00Z", "true"), of("a", "2026-01-01T00:00:00Z", "true")], "a"],
  ])("%s", (_name, classes, expected) => {
    expect(newestDefaultClass(classes)).toBe(expected);
  });

  it.each([
    ["no class", {}, {}, true],
    ["the empty class", {}, { storageClassName: "" }, false],
    ["a class", {}, { storageClassName: "gp2" }, false],
    ["the annotation", { "volume.beta.kubernetes.io/storage-class": "" }, {}, false],
  ])("a claim with %s", (_name, annotations, spec, expected) => {
    expect(leavesClassOpen({ metadata: { annotations }, spec })).toBe(expected);
  });
});
