import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { emulatedVersion } from "../versions/emulated-version.ts";
import { duplicateFields, fieldProblem, unknownFields } from "./unknown-fields.ts";

const newest = emulatedVersion();
const pv = { group: "", kind: "PersistentVolume" };
const pod = { group: "", kind: "Pod" };

describe("unknown fields", () => {
  it("are found at every depth, with their paths", () => {
    const object = {
      kind: "Pod",
      extra: 1,
      metadata: { name: "x", labels: { anything: "goes" }, foo: "bar" },
      spec: { containers: [{ name: "a" }, { name: "b", resources: { limits: { cpu: "1" }, more: {} } }] },
    };
    expect(unknownFields(pod, "v1", object, newest)).toEqual([
      'unknown field "extra"',
      'unknown field "metadata.foo"',
      'unknown field "spec.containers[1].resources.more"',
    ]);
  });

  it("are those that the version does not have yet", () => {
    const object = { spec: { volumeAttributesClassName: "gold" } };
    expect(unknownFields(pv, "v1", object, newest)).toEqual([]);
    expect(unknownFields(pv, "v1", object, emulatedVersion("1.25"))).toEqual([
      'unknown field "spec.volumeAttributesClassName"',
    ]);
  });

  it("differ from the known ones by case", () => {
    expect(unknownFields(pv, "v1", { Spec: {} }, newest)).toEqual(['unknown field "Spec"']);
  });
});

describe("duplicate fields", () => {
  it.each([
    ['{"a":1,"a":2}', ["a"]],
    ['{"spec": {"list": [{}, {"x":1, "x" : {"x":1}}]}}', ["spec.list[1].x"]],
    ['{"a":1,"\\u0061":2}', ["a"]],
    ['{"a":{"b":1},"c":{"b":1}}', []],
    ['{"a":"b\\":","c":["a:","\\\\"]}', []],
    ["[]", []],
    ['{"a":{"k":1},"a":{"k":1,"k":2}}', ["a.k", "a"]],
  ])("of %s", (text, paths) => {
    const found = duplicateFields(text, JSON.parse(text));
    expect([...found].sort()).toEqual(paths.map((path) => `duplicate field ${JSON.stringify(path)}`).sort());
  });

  it("are none in what JSON.stringify writes", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(duplicateFields(text, JSON.parse(text))).toEqual([]);
      }),
    );
  });
});

describe("field validation", () => {
  const unknown = () => ['unknown field "a"'];
  const inText = ['duplicate field "b"'];

  it("is an error, a warning, or nothing", () => {
    const said: string[] = [];
    const warn = (text: string) => said.push(text);
    expect(fieldProblem({ validation: "Strict", inText, warn }, unknown)).toBe(
      'strict decoding error: duplicate field "b", unknown field "a"',
    );
    expect(said).toEqual([]);
    expect(fieldProblem({ validation: "Warn", inText, warn }, unknown)).toBeUndefined();
    expect(said).toEqual(['duplicate field "b"', 'unknown field "a"']);
    expect(fieldProblem({ validation: "Ignore", inText, warn }, unknown)).toBeUndefined();
    expect(fieldProblem(undefined, unknown)).toBeUndefined();
    expect(said).toHaveLength(2);
  });
});
