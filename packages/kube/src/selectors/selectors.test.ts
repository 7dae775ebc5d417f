import { expect, test } from "vitest";
import { parseFieldSelector } from "./field-selector.ts";
import { SelectorError } from "./label-requirement.ts";
import { labelSelectorMatches, parseLabelSelector } from "./label-selector.ts";
import { nodeSelectorMatches } from "./node-selector.ts";

test("a selector that is missing matches nothing, an empty one everything", () => {
  expect(labelSelectorMatches(undefined, { a: "b" })).toBe(false);
  expect(labelSelectorMatches({}, { a: "b" })).toBe(true);
  expect(parseLabelSelector("").matches(undefined)).toBe(true);
  expect(nodeSelectorMatches({ metadata: { name: "n" } }, undefined)).toBe(true);
  expect(nodeSelectorMatches({ metadata: { name: "n" } }, { nodeSelectorTerms: [{}] })).toBe(false);
});

test("an inherited property is no label", () => {
  expect(parseLabelSelector("constructor").matches({})).toBe(false);
  expect(parseFieldSelector("constructor=").matches({})).toBe(true);
});

test("a mistake is named together with the selector it is in", () => {
  expect(() => parseLabelSelector("a in b")).toThrow(SelectorError);
  expect(() => parseLabelSelector("a in b")).toThrow(/"a in b".*'b'/);
  expect(() => parseFieldSelector("spec.nodeName")).toThrow(/FIELD=VALUE/);
});
