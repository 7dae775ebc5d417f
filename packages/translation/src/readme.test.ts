import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, test } from "vitest";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const readme = readFileSync(path("../README.md"), "utf8");
const examples = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code as string);

async function logged(code: string): Promise<readonly string[]> {
  const { outputFiles } = await build({
    stdin: { contents: code, loader: "ts", resolveDir: path(".") },
    alias: { "@longshore/translation": path("./index.ts") },
    bundle: true,
    write: false,
    format: "iife",
  });
  const lines: string[] = [];
  const log = (value: unknown) => lines.push(typeof value === "string" ? value : JSON.stringify(value));
  new Function("console", outputFiles[0]?.text ?? "")({ log });
  return lines;
}

test.each(examples.map((code, i) => [i + 1, code] as const))(
  "example %i of the README prints what it says",
  async (_, code) => {
    const lines = await logged(code);
    const promised = [...code.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, text]) => text as string);
    expect(promised.length).toBeGreaterThan(2);
    expect(lines).toEqual(expect.arrayContaining(promised));
  },
);

test("the README has its examples", () => {
  expect(examples).toHaveLength(2);
});
