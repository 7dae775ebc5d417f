/** Writes docs/scenarios.md: `npx tsx scripts/scenarios.ts`, after a scenario was added, renamed or moved. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { scenarioDocument, scenariosPath } from "./house-rules/scenarios.ts";
import { parse } from "./house-rules/source.ts";

const paths = execFileSync("git", ["-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"], {
  encoding: "utf8",
})
  .split("\n")
  .filter((path) => path !== "" && existsSync(path));
const read = (path: string) => readFileSync(path, "utf8");
const sources = paths.filter((path) => path.endsWith(".test.ts")).map((path) => parse(path, read(path)));
const documents = paths.filter((path) => /^docs\/(behaviour\/)?[^/]+\.md$/.test(path));
writeFileSync(scenariosPath, scenarioDocument(sources, { exists: existsSync, read, documents, sources: [] }));
