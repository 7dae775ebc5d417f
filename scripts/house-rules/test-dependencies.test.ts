import { join } from "node:path/posix";
import { expect, test } from "vitest";
import { parse } from "./source.ts";
import { type KnownDependency, type Repository, testDependencies } from "./test-dependencies.ts";

const files: Readonly<Record<string, string>> = {
  "packages/runtime/src/index.ts": "",
  "packages/kube/src/index.ts": 'import "@longshore/runtime";',
  "packages/apiserver/src/index.ts": 'import "@longshore/kube";',
  "packages/apiserver/src/apply.ts": "",
  "packages/testing/src/kube/index.ts": 'export { link } from "./link.ts";',
  "packages/testing/src/kube/link.ts": 'import "@longshore/kube"; import "@longshore/testing/kube";',
  "packages/testing/src/servers/index.ts": 'export { server } from "../../../../scripts/server.ts";',
  "scripts/server.ts": 'import { apply } from "../packages/apiserver/src/apply.ts";',
};

const repository: Repository = {
  resolve(from, module) {
    const [, name, entry = "index"] = /^@longshore\/([a-z]+)(?:\/(.+))?$/.exec(module) ?? [];
    const ofPackage = name === "testing" ? `${entry}/index` : entry;
    const path = name === undefined ? join(from, "..", module) : `packages/${name}/src/${ofPackage}.ts`;
    const text = files[path];
    return text === undefined ? undefined : parse(path, text);
  },
  dependencies: (name) => new Set(name === "apiserver" ? ["kube", "runtime"] : ["runtime"]),
};

const server: KnownDependency = { tested: "kube", needs: "apiserver", because: "a test" };
const found = (
  path: string,
  text: string,
  known: readonly KnownDependency[] = [],
  used?: Set<KnownDependency>,
) =>
  testDependencies(parse(path, text), repository, known, used).map(
    ({ line, message }) => `${line} ${message.split(", ")[0]}`,
  );

test.each([
  ["packages/kube/src/a.test.ts", 'import { resources } from "./index.ts";'],
  ["packages/kube/src/a.test.ts", 'import { Clock } from "@longshore/runtime";'],
  ["packages/kube/src/a.test.ts", 'import { link } from "@longshore/testing/kube";'],
  ["packages/kube/src/a.test.ts", 'import { expect } from "vitest"; import { readFile } from "node:fs";'],
  ["packages/apiserver/src/testing/world.ts", 'import { resources } from "@longshore/kube";'],
  ["packages/kube/src/a.ts", 'import { apply } from "@longshore/apiserver";'],
  ["packages/testing/src/kube/a.ts", 'import { apply } from "@longshore/apiserver";'],
  ["tests/components/kube/a.test.ts", 'import { apply } from "@longshore/apiserver";'],
])("in %s may stand: %s", (path, text) => {
  expect(found(path, text)).toEqual([]);
});

test.each([
  ["packages/kube/src/a.test.ts", 'import { apply } from "@longshore/apiserver";', "apiserver"],
  ["packages/kube/src/testing/a.ts", 'import type { Apply } from "@longshore/apiserver";', "apiserver"],
  [
    "packages/kube/src/a.contract.ts",
    'const { apply } = await import("../../apiserver/src/apply.ts");',
    "apiserver",
  ],
  [
    "packages/kube/src/a.test.ts",
    'import { server } from "@longshore/testing/servers";',
    "apiserver (through scripts/server.ts)",
  ],
  [
    "packages/runtime/src/a.test.ts",
    'import { link } from "@longshore/testing/kube";',
    "kube (through packages/testing/src/kube/link.ts)",
  ],
])("in %s is refused: %s", (path, text, what) => {
  const tested = path.split("/")[1];
  expect(found(path, `\n${text}`)).toEqual([`2 a test of ${tested} needs ${what}`]);
});

test("a need that is known is permitted to its package, and is seen to be there", () => {
  const used = new Set<KnownDependency>();
  const text = 'import { apply } from "@longshore/apiserver";';
  expect(found("packages/kube/src/a.test.ts", text, [server], used)).toEqual([]);
  expect([...used]).toEqual([server]);
  expect(found("packages/runtime/src/a.test.ts", text, [server])).toHaveLength(1);
});
