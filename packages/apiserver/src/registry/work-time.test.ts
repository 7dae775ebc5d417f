/** Each kind of work that a request can be ends when its time is over. */
import { describe, expect, it } from "vitest";
import { excessOf } from "../api/bounded.ts";
import type { CustomSchema } from "../api/custom-schema.ts";
import { own, sameJson } from "../api/own.ts";
import { withinWorkTime } from "../api/work-time.ts";
import { compareObjects } from "../apply/compare-objects.ts";
import {
  difference,
  type FieldSet,
  fromFieldsV1,
  intersection,
  pathCount,
  recursiveDifference,
  sameSet,
  shownPaths,
  toFieldsV1,
  union,
} from "../apply/field-set.ts";
import { mergeApplied, removeFields } from "../apply/merge-applied.ts";
import { uncovered } from "../authorization/rbac/cover.ts";
import { prune } from "../custom/prune.ts";
import { ruleViolations } from "../custom/rule-violations.ts";
import { validateValue } from "../custom/validate-value.ts";
import { withDefaults } from "../custom/with-defaults.ts";
import { applyJsonPatch } from "../patch/apply-json-patch.ts";
import { applyMergePatch } from "../patch/apply-merge-patch.ts";
import { applyStrategicPatch } from "../patch/apply-strategic-patch.ts";
import { decodeObject } from "../schema/decode-object.ts";
import { objectFromProtobuf } from "../schema/object-from-protobuf.ts";
import { messageBytes, objectToProtobuf } from "../schema/object-to-protobuf.ts";
import { typeOfKind } from "../schema/type-of-kind.ts";
import { duplicateFields, unknownFields } from "../schema/unknown-fields.ts";
import { many, members } from "../testing/heavy-requests/heavy-request.ts";
import { SlowClock } from "../testing/slow-clock.ts";
import { emulatedVersion } from "../versions/emulated-version.ts";
import { configMap } from "./kinds/core.ts";
import { metadataProblems } from "./metadata.ts";
import { excessiveBytes } from "./stored-size.ts";

const count = 5000;
const numbers = many(count, (i) => i);
const texts = many(count, (i) => `a.b/${i}`);
const data = members(count, (i) => [`k${i}`, "v"]);
const otherData = members(count, (i) => [`k${i}`, "w"]);
const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data };
const objects = many(count, () => ({}));
const version = emulatedVersion(undefined, undefined);
const type = typeOfKind(configMap, "v1", version);
const fields = (names: Record<string, unknown>) =>
  fromFieldsV1({ "f:data": Object.fromEntries(Object.keys(names).map((name) => [`f:${name}`, {}])) });
const one: FieldSet = fields(data);
const same: FieldSet = fields(otherData);
const other: FieldSet = fields(members(count, (i) => [`x${i}`, ""]));
const schema = (rest: object): CustomSchema => rest as CustomSchema;
const listOf = (items: object) => schema({ type: "array", items });
const protobuf = objectToProtobuf(object as never) as Buffer;
const podOf = (container: object) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "a" },
  spec: { containers: [{ name: "main", image: "x", ...container }] },
});

/** Work of more than a thousand steps each; none of it is done when the first check finds that time is over. */
const pieces: Readonly<Record<string, () => unknown>> = {
  "bounds of a body": () => excessOf(numbers),
  "owning a body": () => own(objects),
  "comparing objects": () =>
    sameJson(
      objects,
      many(count, () => ({})),
    ),
  "JSON patch": () =>
    applyJsonPatch(
      { data: {} },
      texts.map((text) => ({ op: "add", path: "/data/a", value: text })),
    ),
  "JSON patch of a long list": () => applyJsonPatch({ list: numbers }, [{ op: "remove", path: "/list/0" }]),
  "merge patch": () => applyMergePatch({}, data),
  "strategic patch: members": () => applyStrategicPatch(object, { data: otherData }, configMap),
  "strategic patch: a list": () =>
    applyStrategicPatch({ metadata: { finalizers: [] } }, { metadata: { finalizers: texts } }, configMap),
  "union of fields": () => union(one, other),
  "intersection of fields": () => intersection(one, same),
  "difference of fields": () => difference(one, same),
  "recursive difference of fields": () => recursiveDifference(one, same),
  "comparing fields": () => sameSet(one, same),
  "counting fields": () => pathCount(fields({ ...data })),
  "showing fields": () => shownPaths(one),
  "writing fields": () => toFieldsV1(one),
  "reading fields": () => fields({ ...data }),
  "comparing by type": () => compareObjects(type, object, { ...object, data: otherData }),
  "merging what is applied": () =>
    mergeApplied(type, object, { ...object, data: otherData }, { appliedOrder: true }),
  "removing fields": () => removeFields(type, object, one),
  "decoding an object": () => decodeObject("", "ConfigMap", object),
  "decoding protobuf": () => objectFromProtobuf(protobuf),
  "writing protobuf": () => messageBytes("", "ConfigMap", object as never),
  "unknown fields": () => unknownFields({ group: "", kind: "Pod" }, "v1", podOf({ env: objects }), version),
  "duplicate fields": () => duplicateFields(JSON.stringify(data), data),
  pruning: () => prune({ spec: objects }, schema({ type: "object", properties: { spec: listOf({}) } })),
  defaults: () =>
    withDefaults(objects, listOf({ type: "object", properties: { a: { type: "string", default: "b" } } })),
  "validation by schema": () =>
    validateValue(numbers, listOf({ type: "integer" }), { typedCauses: true, itemPaths: true }),
  "rules in CEL": () =>
    ruleViolations(
      numbers,
      undefined,
      listOf({ type: "integer", "x-kubernetes-validations": [{ rule: "self >= 0" }] }),
      { ratchets: true },
    ),
  "rights that are held": () =>
    uncovered(
      [{ verbs: texts, apiGroups: [""], resources: texts }],
      [{ verbs: texts, apiGroups: [""], resources: texts }],
    ),
  "size in the store": () => excessiveBytes(configMap, { ...object, list: objects } as never),
  labels: () => metadataProblems(configMap, { name: "a", labels: data }),
  finalizers: () => metadataProblems(configMap, { name: "a", finalizers: texts }),
  owners: () =>
    metadataProblems(configMap, {
      name: "a",
      ownerReferences: texts.map((uid) => ({ apiVersion: "v1", kind: "A", name: "a", uid })),
    }),
};

const timeout = expect.objectContaining({ code: 504, reason: "Timeout" });

describe("the first check that is too late ends", () => {
  it.each(Object.entries(pieces))("%s", (_name, work) => {
    // Without a limit it is done.
    expect(() => work()).not.toThrow();
    const clock = new SlowClock();
    clock.jumpAfter(1);
    let error: unknown;
    try {
      withinWorkTime(clock, 10, work);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toEqual(timeout);
  });
});
