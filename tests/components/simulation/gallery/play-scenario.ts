/** Plays a scenario in a process of its own, from a bundle of the sources in which at most one text is changed. */
import { type ChildProcess, fork } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { changedSource, type Mutant, repository, type Scenario } from "./mutant.ts";
import type { ScenarioOutcome } from "./scenario-program.ts";

/** How a scenario ended, and how long that took. */
export interface Played extends ScenarioOutcome {
  readonly tookMs: number;
}

/** A program that has not ended by then spins, however busy the machine is. */
const scenarioWithinMs = 10 * 60_000;

/**
 * Plays the scenario on the sources, or on those with the mutant in them.
 * @throws Error where the mutant does not apply, or the program does not load or does not end
 */
export async function playScenario(scenario: Scenario, mutant?: Mutant): Promise<Played> {
  // Below the repository: the bundle finds libraries there.
  const cache = `${repository}node_modules/.cache/`;
  await mkdir(cache, { recursive: true });
  const directory = await mkdtemp(join(cache, "ls-gallery-"));
  try {
    const program = join(directory, "program.mjs");
    await bundle(scenario, mutant, program);
    const startedMs = performance.now();
    const outcome = await run(program);
    return { ...outcome, tookMs: Math.round(performance.now() - startedMs) };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function bundle({ file, test = "" }: Scenario, mutant: Mutant | undefined, outfile: string) {
  const here = fileURLToPath(new URL(".", import.meta.url));
  const load = `() => import(${JSON.stringify(`${repository}${file}`)})`;
  await build({
    stdin: {
      contents: `import { runScenario } from "./scenario-program.ts";\nawait runScenario(${JSON.stringify(test)}, ${load});`,
      resolveDir: here,
      loader: "ts",
    },
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    logLevel: "silent",
    tsconfig: `${repository}tsconfig.tests.json`,
    plugins: [sources(mutant, join(here, "vitest-in-bundle.ts"))],
  });
}

/** The sources, with the mutant's change; each keeps its own address, so that it finds the files beside it. */
function sources(mutant: Mutant | undefined, vitest: string): Plugin {
  const changed = mutant && `${repository}${mutant.file}`;
  let isApplied = false;
  return {
    name: "sources",
    setup(pluginBuild) {
      pluginBuild.onResolve({ filter: /^vitest$/ }, () => ({ path: vitest }));
      pluginBuild.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        if (path === changed) isApplied = true;
        const source =
          mutant !== undefined && path === changed ? changedSource(mutant) : await readFile(path, "utf8");
        const contents = source.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href));
        return { contents, loader: "ts" };
      });
      pluginBuild.onEnd(() => {
        if (mutant === undefined || isApplied) return undefined;
        const text = `mutant ${mutant.name}: ${mutant.file} is no part of its scenario`;
        return { errors: [{ text }] };
      });
    },
  };
}

/** Runs the program until it says how the scenario ended. */
async function run(program: string): Promise<ScenarioOutcome> {
  const child = fork(program, { execArgv: [], stdio: ["ignore", "ignore", "pipe", "ipc"] });
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), scenarioWithinMs);
  try {
    return await outcomeOf(child, limit.signal);
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
  }
}

function outcomeOf(child: ChildProcess, limit: AbortSignal): Promise<ScenarioOutcome> {
  return new Promise((resolve, reject) => {
    let errors = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      errors = `${errors}${chunk.toString()}`.slice(-2000);
    });
    child.once("message", (outcome) => resolve(outcome as ScenarioOutcome));
    child.once("error", reject);
    child.once("exit", (code, by) => reject(new Error(`the scenario ended with ${by ?? code}: ${errors}`)));
    limit.addEventListener("abort", () => reject(new Error("the scenario has not ended")));
  });
}
