import { describe, expect, test } from "vitest";
import { deadMembers } from "./dead-members.ts";
import { undocumentedExports } from "./documented.ts";
import { flagsInTexts } from "./flags.ts";
import { privateImports } from "./public-entries.ts";
import { brokenLinks, brokenReferences, type Files } from "./references.ts";
import { type Permission, reachesPastSeams } from "./seams.ts";
import { parse } from "./source.ts";
import { forbiddenTexts } from "./texts.ts";

const path = "packages/volumes/src/attach.ts";
const messages = (text: string, permissions: readonly Permission[] = []) =>
  reachesPastSeams(parse(path, text), permissions).map(({ message }) => message.split(" reaches")[0]);

describe("seams", () => {
  test.each([
    ["const t = Date.now();", "Date.now"],
    ["const t = new Date();", "new Date()"],
    ["const t = performance.now();", "performance"],
    ["setTimeout(() => {}, 5);", "setTimeout"],
    ["const later = globalThis.setInterval;", "setInterval"],
    ["const wait = { with: setImmediate };", "setImmediate"],
    ["const signal = AbortSignal.timeout(5);", "AbortSignal.timeout"],
    ["const n = Math.random();", "Math.random"],
    ["const id = crypto.randomUUID();", "crypto.randomUUID"],
    ['import { randomUUID } from "node:crypto";', "node:crypto#randomUUID"],
    ['import { readFile } from "node:fs/promises";', "node:fs/promises"],
    ['import fs from "fs";', "node:fs"],
    ['const { readFile } = await import("node:fs/promises");', "node:fs/promises"],
    ['export { spawn } from "node:child_process";', "node:child_process"],
    ['import * as grpc from "@grpc/grpc-js";', "@grpc/grpc-js"],
    ['const agent = await import("undici/lib/dispatcher/agent.js");', "undici/lib/dispatcher/agent.js"],
    ["const home = process.env.HOME;", "process"],
    ["const body = await fetch(url);", "fetch"],
    ["console.log(1);", "console"],
  ])("%s", (text, what) => {
    expect(messages(text)).toEqual([what]);
  });

  test.each([
    "const t = new Date(text);",
    "clock.setTimeout(5);",
    'import type { ServerOptions } from "node:http";',
    'import { type Stats } from "node:fs";',
    'import { createHash } from "node:crypto";',
    "const process = start(); process.stop();",
    "function read(fetch: () => void) { fetch(); }",
    "interface Node { process(): void; readonly fetch: string }",
    "class A { setTimeout() {} }",
    "// Date.now()\nconst text = 'Math.random()';",
    "const at: Date = clock.now();",
  ])("may stand: %s", (text) => {
    expect(messages(text)).toEqual([]);
  });

  test("names the line", () => {
    expect(reachesPastSeams(parse(path, "const a = 1;\n\nDate.now();"), [])).toMatchObject([
      { path, line: 3 },
    ]);
  });

  test("a permission covers its files and its reach, and is known to be needed", () => {
    const may: Permission = { files: /attach\.ts$/, may: ["time"], because: "a test" };
    const used = new Set<Permission>();
    const found = reachesPastSeams(parse(path, "Date.now(); Math.random();"), [may], used);
    expect(found.map(({ message }) => message)).toEqual([
      "Math.random reaches past the seams (random); use Random",
    ]);
    expect([...used]).toEqual([may]);
    expect(messages("Date.now();", [{ ...may, files: /detach\.ts$/ }])).toEqual(["Date.now"]);
  });
});

describe("documented exports", () => {
  const undocumented = (files: Record<string, string>) =>
    undocumentedExports("p/index.ts", (file) => {
      const text = files[file];
      return text === undefined ? undefined : parse(file, text);
    }).map(({ path: file, line, message }) => `${file}:${line} ${message.split(" ")[0]}`);

  test("finds what is reachable from the root and has no doc comment", () => {
    expect(
      undocumented({
        "p/index.ts": 'export * from "./all.ts";\nexport { named, type Shape as Form } from "./some.ts";',
        "p/all.ts":
          "/** Says so. */\nexport function documented() {}\nexport class Undocumented {}\nfunction inner() {}",
        "p/some.ts":
          "/* not a doc */\nexport const named = () => 1;\ninterface Shape {}\nexport type { Shape };\nexport function unreachable() {}",
      }),
    ).toEqual(["p/all.ts:3 Undocumented", "p/some.ts:2 named", "p/some.ts:3 Form"]);
  });

  test("is content with docs above overloads and lint comments", () => {
    expect(
      undocumented({
        "p/index.ts": [
          "/** Both. */",
          "// biome-ignore lint: a reason",
          "export function over(a: string): void;",
          "export function over(a: number): void;",
          "export function over(a: unknown): void {}",
          'export * from "elsewhere";',
        ].join("\n"),
      }),
    ).toEqual([]);
  });

  test("finds bare constants and aliases", () => {
    expect(undocumented({ "p/index.ts": "export const limit = 5;\nexport type Name = string;" })).toEqual([
      "p/index.ts:1 limit",
      "p/index.ts:2 Name",
    ]);
  });

  test("does not take the doc comment of what comes later for its own", () => {
    expect(
      undocumented({
        "p/index.ts": "export function bare() {}\n/** Says so. */\nexport function documented() {}",
      }),
    ).toEqual(["p/index.ts:1 bare"]);
  });

  test("survives a circle of re-exports", () => {
    expect(
      undocumented({ "p/index.ts": 'export * from "./a.ts";', "p/a.ts": 'export * from "./index.ts";' }),
    ).toEqual([]);
  });
});

describe("flags", () => {
  const found = (text: string, at = path) => flagsInTexts(parse(at, text)).map(({ line }) => line);
  test("are no words of a library", () => {
    expect(found('\nfail("is empty: set --name-prefix");')).toEqual([2]);
    expect(found(`const text = \`\${dir} is full: use another --dir\`;`)).toEqual([1]);
    expect(found('const text = "no secrets (--secrets)";')).toEqual([1]);
    expect(found('const text = "--plugin: no such one";')).toEqual([1]);
  });
  test("are those of other programs, of whole commands and of comments, and the command's own", () => {
    expect(found('run("losetup", ["--detach", device]); // as --detach says')).toEqual([]);
    expect(found(`const text = \`none: start one with "longshore cluster up --dir \${dir}"\`;`)).toEqual([]);
    expect(found('fail("set --name-prefix");', "packages/cli/src/a.ts")).toEqual([]);
    expect(found("const script = `#!/bin/sh\nkubectl scale --replicas=0`;")).toEqual([]);
  });
});

describe("texts", () => {
  const found = (text: string) => forbiddenTexts("a.md", text).length;
  test("finds package hosts and machine paths", () => {
    expect(found(`"resolved": "https://${"registry"}.example.org/a.tgz"`)).toBe(1);
    expect(found(`see ${"/wo"}rk/main/a.ts`)).toBe(1);
    expect(found(`cd ${"/ho"}me/ann/src`)).toBe(1);
    expect(found("a\nb")).toBe(0);
  });
  test("finds names of documents outside the repository", () => {
    expect(found(`Source: ${"DES"}IGN, second part`)).toBe(1);
    expect(found(`Source: ${"spec"} controllers.md A5`)).toBe(1);
    expect(found(`as ${"seed"} 002 has it`)).toBe(1);
    expect(found("the design says; spec.md; seed 61; redesign; a spec is given")).toBe(0);
  });
  test("leaves ordinary paths alone", () => {
    expect(found("/var/lib/kubelet/root/x and $HOME/work/y and ./work/z")).toBe(0);
    expect(found("https://kubernetes.io/docs/")).toBe(0);
  });
  test.each([
    `the driver is ${"to"}ld the name`,
    `${"Te"}lls which volume it is`,
    `function ${"te"}llOfLoss() {}`,
    `class A { #${"te"}ll() {} }`,
    `const is${"Wi"}sh = true;`,
    `import "./${"to"}ld.ts";`,
    `a ${"wi"}sh for storage`,
    `it lists ${"a"}new`,
    `"${"no"}body listens"`,
    `where ${"no"}body's disk is`,
    `the secret is ${"gi"}ven back`,
    `the server ${"is aw"}ay`,
    `the ${"tw"}in of the volume`,
  ])("refuses words that are not plain: %s", (text) => {
    expect(found(text)).toBe(1);
    expect(forbiddenTexts("packages/csi/src/a.ts", text)).toHaveLength(1);
  });
  test("leaves other words alone", () => {
    expect(found("indeed, we recommend a satellite; a new way is always between; amended")).toBe(0);
    expect(found(`as the user \`${"no"}body\`, whose name is "${"no"}body"`)).toBe(0);
  });
  test("leaves the words of generated and recorded data alone", () => {
    const text = `it ${"te"}lls`;
    for (const path of ["a.json", "packages/csi/src/gen/a.ts"]) {
      expect(forbiddenTexts(path, text)).toEqual([]);
    }
    for (const path of ["packages/volumes/src/a.ts", "CHANGELOG.md"]) {
      expect(forbiddenTexts(path, text)).toHaveLength(1);
    }
  });
});

describe("private files of dependencies", () => {
  const exportsOf = (name: string) =>
    ({ one: { ".": "./i.js", "./part": "./p.js", "./sub/*.js": "./s/*.js" }, "@a/b": { "./c": "./c.js" } })[
      name
    ];
  const found = (text: string) =>
    privateImports(parse("packages/kube/src/a.ts", text), exportsOf).map(
      ({ line, message }) => `${line} ${message}`,
    );

  test.each([
    'import { a } from "one";',
    'import { a } from "one/part";',
    'import { a } from "one/sub/x.js";',
    'import { a } from "@a/b";',
    'import { a } from "@a/b/c";',
    'import { a } from "./one/lib.ts";',
    'import { a } from "node:fs/promises";',
    'import type { A } from "types/of/something.js";',
    'import { a } from "@longshore/kube/basics";',
  ])("%s is fine", (text) => {
    expect(found(text)).toEqual([]);
  });

  test.each([
    ['const a = await import("undici/lib/agent.js");', "undici/lib/agent.js is a private file of undici"],
    ['\nimport { a } from "one/other";', "2 one/other is a private file of one"],
    ['export { a } from "@a/b/d";', "@a/b/d is a private file of @a/b"],
  ])("%s is not", (text, message) => {
    expect(found(text).join()).toContain(message);
  });
});

describe("references", () => {
  const texts: Readonly<Record<string, string>> = {
    "docs/contract.md": "# The contract\n\n## C1. One path\n",
    "docs/behaviour/node.md": "# Node\n\n## 2. Mounts\n\n### 2.1 One of them\n\n```\n## 9. Code\n```\n",
    "docs/behaviour/control.md": "# Control\n\n# Part A. Attach\n\n## A7. Pass (`x`)\n\n## A7. Pass (`x`)\n",
    "docs/guide.md": "# Guide\n",
    "docs/decisions/0003-why.md": "# Why\n",
    "README.md": "",
  };
  const directories = new Set(["docs", "docs/behaviour"]);
  const files: Files = {
    exists: (file) => file in texts || directories.has(file),
    read: (file) => texts[file] ?? "",
    documents: Object.keys(texts).filter((file) => file.startsWith("docs/")),
    sources: ["packages/a/src/queue/wait.ts", "packages/a/src/page.tsx"],
  };
  const links = (from: string, text: string) =>
    brokenLinks(from, text, files).map(({ line, message }) => `${line} ${message}`);
  const references = (from: string, text: string) =>
    brokenReferences(from, text, files).map(({ line, message }) => `${line} ${message}`);

  test.each([
    [
      "docs/contract.md",
      "[a](behaviour/node.md) and [b](behaviour/node.md#21-one-of-them), [up](../README.md)",
    ],
    ["docs/contract.md", "[a](#c1-one-path), [second](behaviour/control.md#a7-pass-x-1), [all](behaviour)"],
    ["README.md", "[site](https://example.org/x.md#y) ![image](docs/contract.md)\n\n[a]: docs/guide.md"],
    ["README.md", "`[a](b.md)`\n\n```md\n[a](b.md)\n```"],
  ])("links of %s that lead somewhere: %s", (from, text) => {
    expect(links(from, `${texts[from]}${text}`)).toEqual([]);
  });

  test.each([
    ["README.md", "a\n[a](docs/none.md)", "2 the link docs/none.md leads nowhere: there is no docs/none.md"],
    [
      "README.md",
      "[a](/docs/guide.md#x)",
      "1 the link /docs/guide.md#x leads nowhere: docs/guide.md has no such heading",
    ],
    [
      "docs/guide.md",
      "[a](../contract.md)",
      "1 the link ../contract.md leads nowhere: there is no contract.md",
    ],
    [
      "README.md",
      "[a](docs/behaviour/node.md#9-code)",
      "1 the link docs/behaviour/node.md#9-code leads nowhere: docs/behaviour/node.md has no such heading",
    ],
    [
      "docs/guide.md",
      "# Guide\n[a](#gide)",
      "2 the link #gide leads nowhere: docs/guide.md has no such heading",
    ],
    ["README.md", "[a]: docs/none.md", "1 the link docs/none.md leads nowhere: there is no docs/none.md"],
  ])("a link of %s that leads nowhere: %s", (from, text, message) => {
    expect(links(from, text)).toEqual([message]);
  });

  test.each([
    [
      "packages/a.ts",
      "// docs/behaviour/node.md 2, 2.1; docs/contract.md C1. See docs/behaviour/control.md Part A.",
    ],
    [
      "packages/a.ts",
      "/** docs/behaviour/control.md A7 (detach), 12 of them; docs/behaviour/node.md 2-2.1 */",
    ],
    ["packages/a.ts", "// upstream: objects.md 7, spec.md, docs/behaviour/node.md"],
    ["docs/behaviour/control.md", "node.md 2.1, and §A7"],
    ["docs/guide.md", "[node](behaviour/node.md), behaviour/node.md 2"],
    ["docs/guide.md", "decision 0003, decisions [0003](decisions/0003-why.md), docs/decisions/0003"],
    [
      "packages/a.ts",
      "// `wait.ts`, `queue/wait.ts`, `./wait.ts`, `packages/a/src/page.tsx`, `decide-*.ts`, `.d.ts`, b.ts",
    ],
    ["docs/decisions/0003-why.md", "`gone.ts` is removed"],
    ["CHANGELOG.md", "`gone.ts` is removed"],
  ])("sections that %s names are there: %s", (from, text) => {
    expect(references(from, from in texts ? `${texts[from]}${text}` : text)).toEqual([]);
  });

  test.each([
    ["packages/a.ts", "\n// docs/behaviour/node.md 3", "2 docs/behaviour/node.md has no section 3"],
    ["packages/a.ts", "// docs/behaviour/node.md 9", "1 docs/behaviour/node.md has no section 9"],
    ["packages/a.ts", "// docs/behaviour/node.md 2, 2.7", "1 docs/behaviour/node.md has no section 2.7"],
    [
      "packages/a.ts",
      "// docs/behaviour/control.md A7 and Part B",
      "1 docs/behaviour/control.md has no section Part B",
    ],
    ["packages/a.ts", "// docs/contract.md C9", "1 docs/contract.md has no section C9"],
    [
      "packages/a.ts",
      "// node.md 2",
      "1 node.md is not a file of this repository; write its path, e.g. docs/behaviour/node.md",
    ],
    [
      "packages/a.ts",
      "// docs/none.md",
      "1 docs/none.md is not a file of this repository; write its path, e.g. docs/behaviour/none.md",
    ],
    [
      "packages/a.ts",
      "// as §2 says",
      "1 a section of no document: write docs/behaviour/NAME.md and its number",
    ],
    ["docs/behaviour/node.md", "## 2. Mounts\n§4", "2 docs/behaviour/node.md has no section 4"],
    ["packages/a.ts", "// decision 0004", "1 docs/decisions has no record 0004"],
    ["packages/a.ts", "// see\n * `gone.ts`", "2 gone.ts is no file of this repository"],
    ["docs/guide.md", "`wait.ts`, `ait.ts`", "1 ait.ts is no file of this repository"],
  ])("a reference of %s that leads nowhere: %s", (from, text, message) => {
    expect(references(from, text)).toEqual([message]);
  });
});

describe("members that nothing calls", () => {
  const dead = (declared: string, reader = "") => {
    const source = parse("packages/a/src/a.ts", declared);
    return deadMembers([source], [source, parse("packages/a/src/b.ts", reader)]).map(
      ({ message }) => message.split(" ")[0],
    );
  };

  test.each([
    ["a method of an interface", "interface A { run(): void }"],
    ["a function of an interface", "interface A { readonly run: () => void }"],
    ["a method of a class", "class A { run() {} }"],
    ["a getter", "class A { get run() { return 1; } }"],
    ["what is only written", "interface A { run(): void } const a: A = { run: () => {} };"],
  ])("are found: %s", (_what, text) => {
    expect(dead(text)).toEqual(["run"]);
  });

  test.each([
    ["by a call", "a.run();"],
    ["by an optional call", "a?.run?.();"],
    ["by taking the object apart", "const { run } = a;"],
    ["in a parameter that takes it apart", "function f({ run: go }) {}"],
    ["by its name in a text", 'a["run"](); type Run = A["run"];'],
  ])("are alive where another file reads them %s", (_how, reader) => {
    expect(dead("interface A { run(): void }", reader)).toEqual([]);
  });

  test("are no data, and nothing that Node calls", () => {
    expect(dead("interface A { name: string } class B { toJSON() {} _write() {} #own() {} }")).toEqual([]);
  });
});
