import { expect, test } from "vitest";
import { foreignSources, type KnownReach } from "./foreign-sources.ts";
import { parse } from "./source.ts";

const known: KnownReach = { folder: "tests/", because: "a test" };
const found = (path: string, text: string, used?: Set<KnownReach>) =>
  foreignSources(parse(path, text), [known], used).map(
    ({ line, message }) => `${line} ${message.split(" ")[0]}`,
  );

const there = "packages/kube/src/testing/link.ts";

test.each([
  'import { link } from "../../kube/src/testing/link.ts";',
  'import type { Link } from "../../kube/src/testing/link.ts";',
  'export { link } from "../../kube/src/testing/link.ts";',
  'export * from "../../kube/src/testing/link.ts";',
  'const { link } = await import("../../kube/src/testing/link.ts");',
  'type Link = import("../../kube/src/testing/link.ts").Link;',
])("refuses %s", (text) => {
  expect(found("packages/volumes/src/a.test.ts", `\n${text}`)).toEqual([`2 ${there}`]);
});

test.each([
  ["packages/kube/src/queue/a.test.ts", 'import { link } from "../testing/link.ts";'],
  ["packages/volumes/src/a.test.ts", 'import { link } from "@longshore/testing/kube";'],
  [
    "packages/volumes/src/a.test.ts",
    'import { packageEntries } from "../../../scripts/lib/package-entries.mjs";',
  ],
])("in %s may stand: %s", (path, text) => {
  expect(found(path, text)).toEqual([]);
});

test("a folder that is known may reach, and is seen to need it", () => {
  const used = new Set<KnownReach>();
  expect(found("tests/a.ts", 'import "../packages/kube/src/client.ts";', used)).toEqual([]);
  expect([...used]).toEqual([known]);
  expect(found("examples/a.ts", 'import "../packages/kube/src/client.ts";')).toEqual([
    "1 packages/kube/src/client.ts",
  ]);
});
