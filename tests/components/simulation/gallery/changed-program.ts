/** Programs in a process of their own, from a bundle of the sources in which some are changed. */
import { type ChildProcess, fork } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { repository } from "./mutant.ts";

/** Sources in place of those on disk, by their files from the repository's root. */
export type Changes = ReadonlyMap<string, string>;

/** A program. */
export interface ChangedProgram {
  /** In TypeScript; it imports relative to this directory. */
  readonly contents: string;
  readonly changes?: Changes;
  /** Some of the sources that are to be changed may be no part of it. */
  readonly mayLackSources?: boolean;
}

/** A source that was to be changed is no part of the program. */
export class NotInProgramError extends Error {
  constructor(file: string) {
    super(`${file} is no part of the program`);
  }
}

/** A program that has not ended by then spins, however busy the machine is. */
const endsWithinMs = 10 * 60_000;

/**
 * Runs the program until it sends what it found.
 * @throws NotInProgramError
 * @throws Error where the program does not load or does not end
 */
export async function runChanged<Outcome>(
  changed: ChangedProgram,
): Promise<Outcome & { readonly tookMs: number }> {
  // Below the repository: the bundle finds libraries there.
  const cache = `${repository}node_modules/.cache/`;
  await mkdir(cache, { recursive: true });
  const directory = await mkdtemp(join(cache, "ls-gallery-"));
  try {
    const program = join(directory, "program.mjs");
    await bundle(changed, program);
    const startedMs = performance.now();
    const outcome = await run<Outcome>(program);
    return { ...outcome, tookMs: Math.round(performance.now() - startedMs) };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function bundle(
  { contents, changes = new Map(), mayLackSources = false }: ChangedProgram,
  outfile: string,
): Promise<void> {
  const here = fileURLToPath(new URL(".", import.meta.url));
  const { metafile } = await build({
    stdin: { contents, resolveDir: here, loader: "ts" },
    absWorkingDir: repository,
    metafile: true,
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    logLevel: "silent",
    tsconfig: `${repository}tsconfig.tests.json`,
    plugins: [sources(changes, join(here, "vitest-in-bundle.ts"))],
  });
  const missing = [...changes.keys()].find((file) => metafile.inputs[file] === undefined);
  if (missing !== undefined && !mayLackSources) throw new NotInProgramError(missing);
}

/** The sources with the changes; each keeps its own address, so that it finds the files beside it. */
function sources(changes: Changes, vitest: string): Plugin {
  return {
    name: "sources",
    setup(pluginBuild) {
      pluginBuild.onResolve({ filter: /^vitest$/ }, () => ({ path: vitest }));
      pluginBuild.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const source = changes.get(relative(repository, path)) ?? (await readFile(path, "utf8"));
        const contents = source.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href));
        return { contents, loader: "ts" };
      });
    },
  };
}

/** Runs the program until it says what it found. */
async function run<Outcome>(program: string): Promise<Outcome> {
  const child = fork(program, { execArgv: [], stdio: ["ignore", "ignore", "pipe", "ipc"] });
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), endsWithinMs);
  try {
    return await outcomeOf<Outcome>(child, limit.signal);
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
  }
}

function outcomeOf<Outcome>(child: ChildProcess, limit: AbortSignal): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    let errors = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      errors = `${errors}${chunk.toString()}`.slice(-2000);
    });
    child.once("message", (outcome) => resolve(outcome as Outcome));
    child.once("error", reject);
    child.once("exit", (code, by) => reject(new Error(`the program ended with ${by ?? code}: ${errors}`)));
    limit.addEventListener("abort", () => reject(new Error("the program has not ended")));
  });
}
