/**
 * The packages as a user gets them: packs all of them, installs the tarballs in an empty project, and there type-checks a program
 * that imports every entry, runs the programs of the READMEs and the command, and looks at the source maps.
 *
 *   npm run build && npx tsx scripts/install-test.ts
 *   PATH=DIRECTORY_OF_ANOTHER_NODE:$PATH node --import tsx scripts/install-test.ts
 *
 * npm runs on the Node that runs this; what the packages depend on comes from npm's cache, or else from the registry.
 */
import { execFile, execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { packageEntries as everyEntry } from "./lib/package-entries.mjs";
import { examplesOf } from "./lib/readme-examples.ts";
import { brokenSourceMaps } from "./lib/source-maps.ts";

const packageEntries = everyEntry.filter(({ isPublished }) => isPublished);
const root = fileURLToPath(new URL("../", import.meta.url));
const env = {
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
  npm_config_update_notifier: "false",
};

/** Runs a program and returns what it wrote. @throws Error with its output when it fails */
function run(cwd: string, program: string, ...args: readonly string[]): string {
  try {
    return execFileSync(program, args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout?: string; readonly stderr?: string };
    const text = [program, ...args].join(" ").slice(0, 200);
    throw new Error(`${text} failed:\n${stdout ?? ""}${stderr ?? ""}`, { cause: error });
  }
}

/** Packs every published package into `directory`; the paths of the tarballs. @throws Error when one was never built */
function packAll(directory: string): string[] {
  for (const { specifier, source } of packageEntries) {
    const built = source.replace(/\/src\/(.*)\.ts$/, "/dist/$1.js");
    if (!existsSync(built)) throw new Error(`${specifier} is not built: run npm run build first`);
  }
  const names = new Set(packageEntries.map(({ specifier }) => specifier.split("/", 2).join("/")));
  const workspaces = [...names].map((name) => `--workspace=${name}`);
  run(root, "npm", "pack", ...workspaces, "--pack-destination", directory, "--silent");
  return readdirSync(directory).map((name) => join(directory, name));
}

/** An empty project with the tarballs, and what a TypeScript program for Node needs besides. */
function install(project: string, tarballs: readonly string[]): void {
  mkdirSync(project);
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const manifest = { name: "user", version: "1.0.0", private: true, type: "module" };
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
  const types = `@types/node@${devDependencies["@types/node"]}`;
  const flags = ["--engine-strict", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  run(project, "npm", "install", ...flags, ...tarballs, types);
}

/** Writes the programs; returns their names without the ending: one that imports every entry, and those of the documents. */
function writePrograms(project: string): string[] {
  mkdirSync(join(project, "src"));
  const imports = packageEntries.map(({ specifier }, i) => `import * as entry${i} from "${specifier}";`);
  const entries = packageEntries.map((_, i) => `entry${i}`).join(", ");
  const check = `for (const entry of [${entries}]) if (Object.keys(entry).length === 0) throw new Error("an entry is empty");`;
  const programs = new Map([["entries", `${imports.join("\n")}\n${check}\n`]]);
  const documents = run(
    root,
    "git",
    "-c",
    "safe.directory=*",
    "ls-files",
    "-co",
    "--exclude-standard",
    "*.md",
  );
  for (const path of documents.split("\n").filter((line) => line !== "" && existsSync(join(root, line)))) {
    for (const { line, code } of examplesOf(readFileSync(join(root, path), "utf8"))) {
      programs.set(`${path.replaceAll(/[^a-z0-9]+/gi, "-")}-${line}`, code);
    }
  }
  for (const [name, code] of programs) writeFileSync(join(project, "src", `${name}.ts`), code);
  return [...programs.keys()];
}

/** Type-checks the programs as a strict project would, and compiles them into `out`. */
function compile(project: string): void {
  const compilerOptions = {
    target: "ES2023",
    lib: ["ES2023", "ESNext.Disposable"],
    types: ["node"],
    module: "NodeNext",
    strict: true,
    skipLibCheck: true,
    rootDir: "src",
    outDir: "out",
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
  run(project, process.execPath, join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.json");
}

/** Runs a compiled program; what it prints is not looked at. @throws Error with its output when it fails, or takes a minute */
async function runProgram(project: string, name: string): Promise<void> {
  const args = ["--enable-source-maps", join("out", `${name}.js`)];
  await promisify(execFile)(process.execPath, args, { cwd: project, env, timeout: 60_000 });
}

/** Does one step of the test and says how long it took. */
async function step<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await work();
  console.log(`ok    ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  return result;
}

/** All steps, in `directory`. @throws Error at the first that fails */
async function installTest(directory: string): Promise<void> {
  const packed = join(directory, "packed");
  const project = join(directory, "project");
  mkdirSync(packed);
  const tarballs = await step("packed", () => packAll(packed));
  await step(`installed ${tarballs.length} tarballs on Node ${process.version}`, () =>
    install(project, tarballs),
  );
  await step("source maps resolve", () => {
    const broken = brokenSourceMaps(join(project, "node_modules/@longshore"));
    const remedy = "If their sources are gone: remove packages/*/dist, and build again";
    if (broken.length > 0) throw new Error([...broken, remedy].join("\n"));
  });
  const programs = writePrograms(project);
  await step(`${programs.length} programs compile`, () => compile(project));
  await Promise.all(programs.map((name) => step(`${name} runs`, () => runProgram(project, name))));
  await step("the command runs", () =>
    run(project, join(project, "node_modules/.bin/longshore"), "--version"),
  );
}

const directory = mkdtempSync(join(tmpdir(), "longshore-install-"));
try {
  await step("install test", () => installTest(directory));
} catch (error) {
  console.error(`FAIL  ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
