/** What documents say of the code, compared with the code: tables, numbers and names that a change would leave behind. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { emulatedVersion } from "@longshore/apiserver";
import { conformanceChecks } from "@longshore/conformance";
import { behaviours } from "@longshore/local";
import { faultNames } from "@longshore/reference-driver";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(`${root}${path}`, "utf8");

/** What the first group matches, each time; a document that says nothing of it any more is a finding as well. */
function said(path: string, pattern: RegExp): readonly string[] {
  const found = [...read(path).matchAll(pattern)].map(([, group = ""]) => group);
  expect(found, `${path} no longer says it: ${pattern}`).not.toEqual([]);
  return found;
}

test("the guide to driver qualify has a row for each behaviour", () => {
  const [table = ""] = said("docs/guides/driver-qualify.md", /^(\| behaviour [\s\S]*?)\n\n/gm);
  const [head, line, ...names] = [...table.matchAll(/^\| *([^|]*[^| ]) *\|/gm)].map(([, name]) => name);
  expect(head).toBe("behaviour");
  expect(line).toMatch(/^-+$/);
  expect([...names].sort()).toEqual([...behaviours].sort());
});

test.each([
  ["README.md", /shows itself as Kubernetes (1\.\d+)/g],
  ["packages/apiserver/README.md", /version it emulates \((1\.\d+),/g],
  ["packages/apiserver/README.md", /; (1\.\d+) by default\)/g],
])("%s names the newest emulated version: %s", (path, pattern) => {
  expect(new Set(said(path, pattern))).toEqual(new Set([emulatedVersion().text]));
});

test.each([
  [/conformance suite for CSI drivers .*: (\d+) checks/g, conformanceChecks.length],
  [/makes it break one of (\d+) rules/g, faultNames.length],
])("CHANGELOG.md counts right what is newest: %s", (pattern, count) => {
  // The newest statement: what a release said stays as it was.
  expect(said("CHANGELOG.md", pattern)[0]).toBe(String(count));
});

test("decision 0014 counts the faults right", () => {
  const record = "docs/decisions/0014-conformance-where-the-specification-is-open.md";
  expect(said(record, /reference driver's (\d+) faults/g)).toEqual([String(faultNames.length)]);
});

test("the report in the guide to driver check is of all checks", () => {
  const [totals = ""] = said(
    "docs/guides/driver-check.md",
    /^(\d+ passed, \d+ failed, \d+ warned, \d+ skipped) in /gm,
  );
  const sum = (totals.match(/\d+/g) ?? []).reduce((before, number) => before + Number(number), 0);
  expect(sum).toBe(conformanceChecks.length);
});

describe.each(["CONTRIBUTING.md", "README.md"])("what %s says to run is there", (path) => {
  const { scripts } = JSON.parse(read("package.json")) as { readonly scripts: Record<string, string> };

  test("scripts of package.json", () => {
    const named = said(path, /npm run (?:--silent )?([a-z][a-z:-]*)/g);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });

  test("files", () => {
    const text = read(path);
    const named = [...text.matchAll(/(?<![\w/.-])(?:scripts|\.ci|tests|packages)\/[\w./-]*\w/g)].map(
      ([file]) => file,
    );
    expect(named.filter((file) => !existsSync(`${root}${file}`))).toEqual([]);
  });
});
