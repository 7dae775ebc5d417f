import { describe, expect, test } from "vitest";
import { folderCircles } from "./folder-circles.ts";
import { parse } from "./source.ts";

describe("circles between folders", () => {
  const circles = (files: Readonly<Record<string, string>>) =>
    folderCircles(Object.entries(files).map(([file, text]) => parse(`packages/p/src/${file}`, text)));
  const both = {
    "plugins/aws.ts": 'import { a } from "../node/a.ts";',
    "node/b.ts": '\nexport type { B } from "../plugins/b.ts";',
  };

  test("two folders that import each other are found, with an import each way", () => {
    expect(circles(both)).toEqual([
      {
        path: "packages/p/src/node/b.ts",
        line: 2,
        message:
          "node/, plugins/ of packages/p/src import each other in a circle: " +
          "packages/p/src/node/b.ts:2 imports packages/p/src/plugins/b.ts; " +
          "packages/p/src/plugins/aws.ts:1 imports packages/p/src/node/a.ts",
      },
    ]);
  });

  test.each<[string, Readonly<Record<string, string>>, string]>([
    [
      "a circle of three",
      {
        "a/1.ts": 'import "../b/2.ts";',
        "b/2.ts": 'const c = await import("../c/3.ts");',
        "c/3.ts": 'export * from "../a/4.ts";',
      },
      "b/, c/, a/ of packages/p/src",
    ],
    [
      "a folder and a file beside it",
      { "run.ts": 'import "./checks/a.ts";', "checks/b.ts": 'let r: import("../run.ts").Run;' },
      "checks/, run.ts of packages/p/src",
    ],
    [
      "two folders deep in another",
      { "x/a/1.ts": 'import "../b/1.ts";', "x/b/2.ts": 'import "../a/2.ts";' },
      "b/, a/ of packages/p/src/x",
    ],
  ])("%s is found", (_, files, start) => {
    const found = circles(files);
    expect(found.map(({ message }) => message.split(" import each")[0])).toEqual([start]);
  });

  test.each<[string, Readonly<Record<string, string>>]>([
    ["one way", { "a/1.ts": 'import "../b/1.ts"; import "../b/2.ts";', "b/1.ts": 'import "./2.ts";' }],
    [
      "a folder between two files",
      { "run.ts": 'import "./checks/a.ts";', "checks/a.ts": 'import "../check.ts";' },
    ],
    ["files alone, which another check finds", { "a.ts": 'import "./b.ts";', "b.ts": 'import "./a.ts";' }],
    ["other packages", { "a/1.ts": 'import "@longshore/q"; import "node:fs";' }],
  ])("%s may stand", (_, files) => {
    expect(circles(files)).toEqual([]);
  });
});
