import { describe, expect, it } from "vitest";
import {
  type Cluster,
  annotationKeyControllerFinished as finished,
  annotationKeyNeedsComplete as needsComplete,
  annotationKeyKubernetesVersion as override,
} from "./cluster.ts";
import {
  clusterCSIMigrationControllerNotFinished,
  clusterShootKubernetesVersionForCSIMigrationAtLeast,
  clusterShootProviderType,
  isMalformed,
} from "./predicates.ts";

const aShoot = (version: unknown, annotations: object = {}, type: unknown = "aws") => ({
  metadata: { name: "a", annotations },
  spec: { provider: { type }, kubernetes: { version } },
});
const holding = (shoot: unknown): Cluster => ({ metadata: { name: "shoot--p--a" }, spec: { shoot } });
const annotated = (annotations: Record<string, string>): Cluster => ({
  ...holding(aShoot("1.18.3")),
  metadata: { name: "shoot--p--a", annotations },
});

describe("the predicates (migration-controllers.md A3)", () => {
  it.each<[string, Cluster, boolean]>([
    ["its type", holding(aShoot("1.18.3")), true],
    ["another type", holding(aShoot("1.18.3", {}, "gcp")), false],
    ["no type", holding(aShoot("1.18.3", {}, null)), false],
    ["a type that is a number", holding(aShoot("1.18.3", {}, 1)), false],
    ["no Shoot", { metadata: { name: "a" } }, false],
    ["a Shoot that is null", holding(null), false],
    ["a Shoot that is text", holding("{}"), false],
  ])("ClusterShootProviderType: %s", (_, cluster, holds) => {
    expect(clusterShootProviderType("aws")(cluster)).toBe(holds);
  });

  it.each<[string, Cluster, boolean]>([
    ["the version", holding(aShoot("1.18.0")), true],
    ["a later patch", holding(aShoot("1.18.9")), true],
    ["a later minor version", holding(aShoot("1.19.0")), true],
    ["an earlier one", holding(aShoot("1.17.17")), false],
    ["with build and pre-release", holding(aShoot("v1.18.0-gke.1+a")), true],
    ["the Shoot names a later version", holding(aShoot("1.18.3", { [override]: "1.19" })), false],
    ["the Shoot names an earlier version", holding(aShoot("1.17.3", { [override]: "1.17" })), true],
    ["the Shoot names no version", holding(aShoot("1.18.3", { [override]: "soon" })), false],
    ["a version that is none", holding(aShoot("newest")), false],
    ["a version that is a number", holding(aShoot(1.18)), false],
    ["no Shoot", { metadata: { name: "a" } }, false],
  ])("ClusterShootKubernetesVersionForCSIMigrationAtLeast: %s", (_, cluster, holds) => {
    expect(clusterShootKubernetesVersionForCSIMigrationAtLeast("1.18")(cluster)).toBe(holds);
  });

  // One function is asked about the object of each event: created, updated, and as it was when it was deleted (E6).
  it.each<[string, Cluster, boolean]>([
    ["no annotation", holding(aShoot("1.18.3")), true],
    ["other annotations", annotated({ [needsComplete]: "true" }), true],
    ["the annotation", annotated({ [finished]: "true" }), false],
    ["the annotation with any value", annotated({ [finished]: "false" }), false],
    ["the annotation without a value", annotated({ [finished]: "" }), false],
  ])("ClusterCSIMigrationControllerNotFinished: %s", (_, cluster, holds) => {
    expect(clusterCSIMigrationControllerNotFinished()(cluster)).toBe(holds);
  });
});

describe("a malformed Cluster is reported by the controller of its provider, as far as that can be read", () => {
  it.each<[string, Cluster, boolean]>([
    ["well-formed", holding(aShoot("1.18.3")), false],
    ["well-formed, below the version", holding(aShoot("1.17.3")), false],
    ["no Shoot: it may be anyone's", { metadata: { name: "a" } }, true],
    ["a version that is none", holding(aShoot("newest")), true],
    ["a version that is none, of another provider", holding(aShoot("newest", {}, "gcp")), false],
    ["a version that is a number, of another provider", holding(aShoot(1.18, {}, "gcp")), false],
    ["its own version is none", holding(aShoot("1.18.3", { [override]: "soon" })), true],
  ])("%s", (_, cluster, expected) => {
    expect(isMalformed(cluster, "aws")).toBe(expected);
  });
});
