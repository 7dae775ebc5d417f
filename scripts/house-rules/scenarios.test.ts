import { expect, test } from "vitest";
import { brokenReferences, type Files } from "./references.ts";
import { scenarioDocument, scenariosOf, scenariosPath, staleScenarios } from "./scenarios.ts";
import { parse } from "./source.ts";

const path = "packages/volumes/src/attach.test.ts";
// Names are put together, since the rule reads this file, too.
const rule = (...rules: string[]) => `(${rules.join("; ")})`;
const rules = "# Rules\n\n# Part D. Rest\n\n## A7. Attach\n\n## 3. Mount\n\n1. First.\n2. Second.\n";
const files: Files = {
  exists: (name) => name === "docs/behaviour/some.md",
  read: () => rules,
  documents: ["docs/behaviour/some.md"],
  sources: [],
};
const scenariosIn = (text: string, file = path) => scenariosOf(parse(file, text));

test("the rules stand at the end of a test's name, which is listed with its groups", () => {
  const text = [
    `describe("disks (docs/behaviour/some.md 3)", () => {`,
    `  it("go ${rule("some.md A7, 3.1 and 3.2", "other.md Part D")}", async () => {});`,
    `  it("is a table's row", () => {});`,
    `});`,
    `it.each([1])(\`row %i ${rule("some.md 3")}\`, async () => {});`,
    `test.skipIf(no)("alone ${rule("some.md 3")}", () => {});`,
  ].join("\n");
  expect(
    scenariosIn(text).map(({ line, name, rules }) => [line, name, rules.map(({ section }) => section)]),
  ).toEqual([
    [2, "disks › go", ["A7", "3.1", "3.2", "Part D"]],
    [5, "row %i", ["3"]],
    [6, "alone", ["3"]],
  ]);
});

test("no other file has scenarios, and no other call", () => {
  const name = `"a ${rule("some.md 3")}"`;
  expect(scenariosIn(`it(${name});`, "packages/volumes/src/attach.ts")).toEqual([]);
  expect(scenariosIn(`describe(${name}); write(${name}); it(name);`)).toEqual([]);
});

test("the list is that of the tests, by document and section", () => {
  const tests = [parse(path, `it("one | <two> ${rule("some.md A7, 3.2")}");`)];
  const text = scenarioDocument(tests, files);
  expect(text).toContain("\n1 tests in which");
  expect(text.indexOf("### some 3.2. Mount")).toBeLessThan(text.indexOf("### some A7. Attach"));
  expect(text).toContain(
    "| one \\| &lt;two> | [volumes/attach.test.ts](../packages/volumes/src/attach.test.ts) |",
  );
  const found = (stored: string) =>
    staleScenarios(tests, {
      ...files,
      exists: (name) => name === scenariosPath || files.exists(name),
      read: (name) => (name === scenariosPath ? stored : rules),
    });
  expect(found(text)).toEqual([]);
  expect(found(`${text}x`)).toMatchObject([{ path: scenariosPath }]);
  expect(staleScenarios(tests, files)).toMatchObject([{ path: scenariosPath }]);
});

test("a test names a document by its name alone, and a section's item by both numbers", () => {
  const found = (text: string, file = path) =>
    brokenReferences(file, text, files).map(({ message }) => message);
  expect(found("some.md A7, 3.2 and Part D")).toEqual([]);
  expect(found("some.md 3.3")).toEqual(["docs/behaviour/some.md has no section 3.3"]);
  expect(found("some.md A8")).toEqual(["docs/behaviour/some.md has no section A8"]);
  expect(found("some.md A7", "packages/volumes/src/attach.ts")).toHaveLength(1);
});
