/**
 * The examples in READMEs and guides run: every `ts` block that imports one of our packages is run from the
 * sources, as a module of its own. A block that cannot run alone is marked ```ts no-run.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { examplesOf } from "../../scripts/lib/readme-examples.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

test("runnable blocks are found, others are not", () => {
  const block = (info: string, code: string) => `\`\`\`${info}\n${code}\n\`\`\`\n`;
  const ours = 'import { x } from "@longshore/kube";';
  const text = `# A\n\n${block("ts", ours)}${block("ts no-run", ours)}${block("sh", ours)}${block("ts", "x();")}`;
  expect(examplesOf(text)).toEqual([{ line: 3, code: `${ours}\n` }]);
});

const documents = execFileSync(
  "git",
  ["-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "*.md"],
  {
    cwd: root,
    encoding: "utf8",
  },
)
  .split("\n")
  .filter((path) => path !== "");
const examples = documents.flatMap((path) =>
  examplesOf(readFileSync(join(root, path), "utf8")).map((example) => ({ ...example, path })),
);

describe.runIf(examples.length > 0)("examples", () => {
  mkdirSync(join(root, ".longshore"), { recursive: true });
  const directory = mkdtempSync(join(root, ".longshore/examples-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test.each(examples)("$path:$line", async ({ path, line, code }) => {
    const file = join(directory, `${path.replaceAll(/[^a-z0-9]+/gi, "-")}-${line}.ts`);
    writeFileSync(file, code);
    await import(/* @vite-ignore */ file);
  });
});
