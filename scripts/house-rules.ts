/**
 * Checks the rules of the house that no linter knows: the world outside is reached through the seams alone,
 * folders import each other in no circle, no package reaches into another's sources, the tests of a package need only what it
 * depends on, exported names are documented, members are called, no library speaks of flags, no package host, no machine path
 * and no refused word stands in a file, references lead somewhere, docs/scenarios.md lists the scenarios.
 *
 *   tsx scripts/house-rules.ts      prints `path:line message` for each finding; exits 1 if there is one
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { join } from "node:path/posix";
import { deadMembers } from "./house-rules/dead-members.ts";
import { undocumentedExports } from "./house-rules/documented.ts";
import { flagsInTexts } from "./house-rules/flags.ts";
import { folderCircles } from "./house-rules/folder-circles.ts";
import { foreignSources, type KnownReach, knownReaches } from "./house-rules/foreign-sources.ts";
import { permissions } from "./house-rules/permissions.ts";
import { type ExportsOf, privateImports } from "./house-rules/public-entries.ts";
import { brokenLinks, brokenReferences, type Files } from "./house-rules/references.ts";
import { staleScenarios } from "./house-rules/scenarios.ts";
import { type Permission, reachesPastSeams } from "./house-rules/seams.ts";
import { type Finding, parse, type Source } from "./house-rules/source.ts";
import {
  type KnownDependency,
  knownDependencies,
  type Repository,
  testDependencies,
} from "./house-rules/test-dependencies.ts";
import { forbiddenTexts } from "./house-rules/texts.ts";
import { packageEntries } from "./lib/package-entries.mjs";

const files = execFileSync("git", ["-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"], {
  encoding: "utf8",
})
  .split("\n")
  .filter((path) => path !== "" && existsSync(path));

const isProduct = (path: string) =>
  /^packages\/[^/]+\/src\/.*\.tsx?$/.test(path) &&
  !/\.(test|contract|bench)\.ts$|\/testing\/|\/gen\//.test(path);
const isText = (path: string) =>
  /(\.(ts|tsx|js|mjs|json|jsonc|md|sh|ya?ml|proto|html|css|txt)|\/run|\.npmrc)$/.test(path) &&
  !/(^|\/)vectors\//.test(path);

const read = (path: string) => readFileSync(path, "utf8");
const sources = new Map<string, Source>();
const load = (path: string): Source | undefined => {
  if (!isProduct(path) || !existsSync(path)) return undefined;
  const source = sources.get(path) ?? parse(path, read(path));
  sources.set(path, source);
  return source;
};

const exportsOf: ExportsOf = (packageName) => {
  const manifest = `node_modules/${packageName}/package.json`;
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")).exports : undefined;
};

const findings: Finding[] = [];
const used = new Set<Permission>();
for (const path of files.filter(isProduct)) {
  const source = load(path);
  if (source === undefined) continue;
  findings.push(...reachesPastSeams(source, permissions, used), ...privateImports(source, exportsOf));
  findings.push(...flagsInTexts(source));
}
for (const permission of permissions.filter((candidate) => !used.has(candidate))) {
  findings.push({
    path: "scripts/house-rules/permissions.ts",
    line: 1,
    message: `nothing needs the permission for ${permission.because} (${permission.files.source}): remove it`,
  });
}
findings.push(...folderCircles(sources.values()));
const readers = files
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => load(path) ?? parse(path, read(path)));
findings.push(
  ...deadMembers(
    readers.filter(({ path }) => isProduct(path)),
    readers,
  ),
);
for (const { source } of packageEntries) {
  findings.push(...undocumentedExports(relative(process.cwd(), source), load));
}
const reaches = new Set<KnownReach>();
for (const reader of readers) findings.push(...foreignSources(reader, knownReaches, reaches));
for (const { folder } of knownReaches.filter((candidate) => !reaches.has(candidate))) {
  findings.push({
    path: "scripts/house-rules/foreign-sources.ts",
    line: 1,
    message: `${folder} reaches into no package: remove the entry`,
  });
}
const readable = new Map(readers.map((source) => [source.path, source]));
const entryOf = new Map(
  packageEntries.map(({ specifier, source }) => [specifier, relative(process.cwd(), source)]),
);
const dependencies = (name: string): Set<string> => {
  const { references = [] } = JSON.parse(read(`packages/${name}/tsconfig.json`));
  const direct = references.map(({ path }: { path: string }) => path.replace("../", ""));
  return new Set(direct.flatMap((each: string) => [each, ...dependencies(each)]));
};
const packages: Repository = {
  resolve: (from, module) =>
    readable.get((module.startsWith(".") ? join(from, "..", module) : entryOf.get(module)) ?? ""),
  dependencies,
};
const neededByTests = new Set<KnownDependency>();
for (const reader of readers)
  findings.push(...testDependencies(reader, packages, knownDependencies, neededByTests));
for (const { tested, needs } of knownDependencies.filter((candidate) => !neededByTests.has(candidate))) {
  findings.push({
    path: "scripts/house-rules/test-dependencies.ts",
    line: 1,
    message: `no test of ${tested} needs ${needs}: remove the entry`,
  });
}
const documents = files.filter((path) => /^docs\/((behaviour|decisions)\/)?[^/]+\.md$/.test(path));
const repository: Files = {
  exists: existsSync,
  read,
  documents,
  sources: files.filter((path) => /\.tsx?$/.test(path)),
};
// The rule of references and its tests name what they refuse.
const namesReferences = (path: string) =>
  /^scripts\/house-rules\/(references|house-rules\.test|scenarios\.test)\.ts$/.test(path);
for (const path of files.filter(isText)) {
  const text = read(path);
  findings.push(...forbiddenTexts(path, text));
  if (path.endsWith(".md")) findings.push(...brokenLinks(path, text, repository));
  if (!namesReferences(path)) findings.push(...brokenReferences(path, text, repository));
}
findings.push(...staleScenarios(readers, repository));

const lines = findings.map(({ path, line, message }) => `${path}:${line} ${message}`);
lines.push(`house rules: ${files.length} files, ${sources.size} sources, ${findings.length} findings`);
process.stdout.write(`${lines.join("\n")}\n`);
// A check that saw nothing must not pass.
process.exitCode = findings.length > 0 || sources.size === 0 ? 1 : 0;
